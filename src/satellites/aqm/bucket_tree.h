// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The token buckets of FABA and SFED, in a tree: a leaf is a flow or an aggregate of flows and has a bucket, an
/// interior node is a class and has its own sigma. The flat algorithms are trees of one node.
///
/// Paper: Kamra, Saran, Sen, Shorey, "Fair adaptive bandwidth allocation: a rate control based active queue management
/// discipline", Computer Networks (2004), sections 4 and 6. T tokens, L_j the height of bucket j, x_j its tokens:
///
///     L_j = L_parent * w_j / (sum of w over the active children of the parent),  L_root = T           (6.1, 6.3)
///     sum(x) + sum(sigma) + tokens of queued packets = T                        after every event
///
/// Tokens are counted in integers of 2^-16 token, so the sum is exactly T at any time. sigma of the root starts at T.
/// An interior node is active while a leaf below it is. It draws its height from its parent's sigma when it becomes
/// active, and passes all its tokens up when it has lost its last leaf. A node also passes up tokens beyond its height
/// that it does not need for its own debt (sigma > 0).
#pragma once

#include "satellites/aqm/weighted_set.h"

#include <algorithm>
#include <cstdint>

namespace msfrs {

using Tokens = int64_t;
constexpr Tokens Token = 1 << 16; ///< one token: a packet, or a byte

struct Node;

/// A child of a node: the bucket of a leaf, or an interior node. Zeroed memory is a valid inactive child.
struct Bucket {
    Tokens tokens; ///< x_j; of an interior node all its tokens, including its sigma
    double weight;
    Place place;   ///< among the parent's active children
    Node *parent;
    Node *node;    ///< itself if it is an interior node, null for a leaf

    bool active() const { return place.held(); }
};

/// An interior node, or the root (without a parent).
struct Node : Bucket {
    Tokens sigma;
    WeightedSet<Bucket> children; ///< active ones
    const msfrs_class *cls;       ///< null for the root
    Place turn;                   ///< position in SFED's rounds
    Tokens due;                   ///< tokens that the child there is still owed
};

class BucketTree {
public:
    explicit BucketTree(const Tokens total): total_(total), root_() { root_.sigma = total; }
    BucketTree(const BucketTree &) = delete;
    BucketTree &operator=(const BucketTree &) = delete;

    Node &root() { return root_; }
    Tokens total() const { return total_; } ///< T

    /// L of an active child. At least the smallest amount, so that a share of it is always defined.
    Tokens height(const Bucket &b) const { return std::max<Tokens>(static_cast<Tokens>(realHeight(b)), 1); }

    /// Makes b active, and the nodes above it: it gets a full bucket, drawn from sigma.
    void open(Bucket &b, const double weight)
    {
        auto &parent = *b.parent;
        if (parent.parent && !parent.active())
            open(parent, parent.cls->weight);
        b.weight = weight;
        parent.children.add(b);
        b.tokens = height(b);
        parent.sigma -= b.tokens;
        if (b.node)
            b.node->sigma = b.tokens; // no tokens in buckets yet
    }

    /// Removes an active child; its tokens go to sigma. A node that has no children left is removed, too.
    void close(Bucket &b)
    {
        auto &parent = *b.parent;
        parent.sigma += b.tokens;
        b.tokens = 0;
        if (b.node)
            b.node->sigma = 0;
        parent.children.remove(b);
        if (parent.children.empty() && parent.parent)
            close(parent);
    }

    void reweigh(Bucket &b, const double weight)
    {
        b.parent->children.remove(b);
        b.weight = weight;
        b.parent->children.add(b);
    }

    /// Takes the tokens of an active child beyond its height: all of them from a leaf, the spare ones from a node.
    void gather(Bucket &b, const Tokens height)
    {
        const Tokens beyond = b.tokens - height;
        const Tokens excess = b.node ? std::min(beyond, b.node->sigma) : beyond;
        if (excess > 0)
            move(b, -excess);
    }
    void gather(Bucket &b) { gather(b, height(b)); }

    /// Takes tokens out of a leaf's bucket and the tree, for a packet that is queued.
    static void spend(Bucket &leaf, const Tokens amount)
    {
        for (Bucket *b = &leaf; b->parent; b = b->parent)
            b->tokens -= amount;
    }

    /// Moves tokens from the parent's sigma to an active child, or back if amount < 0.
    static void move(Bucket &b, const Tokens amount)
    {
        b.parent->sigma -= amount;
        b.tokens += amount;
        if (b.node)
            b.node->sigma += amount;
    }

    /// Recomputed sums, for gauges and tests.
    struct Sums {
        uint32_t buckets = 0;
        Tokens inBuckets = 0, sigma = 0;
    };
    void count(Node &n, Sums &sums) const
    {
        sums.sigma += n.sigma;
        n.children.each([&](Bucket &b) {
            if (b.node) {
                count(*b.node, sums);
            } else {
                ++sums.buckets;
                sums.inBuckets += b.tokens;
            }
        });
    }

private:
    double realHeight(const Bucket &b) const
    {
        const auto &parent = *b.parent;
        const double above = parent.parent ? realHeight(parent) : static_cast<double>(total_);
        return above * b.weight / parent.children.total();
    }

    Tokens total_;
    Node root_;
};

} // namespace msfrs
