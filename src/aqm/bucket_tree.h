// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The token buckets of FABA and SFED, in a tree: a leaf is a flow or an aggregate of flows and has a bucket, an
/// interior node is a class and has a sigma of its own. The flat algorithms are trees of one node.
///
/// Paper: Kamra, Saran, Sen, Shorey, "Fair adaptive bandwidth allocation: a rate control based active queue management
/// discipline", Computer Networks (2004), sections 4 and 6. T tokens, L_j the height of bucket j, x_j what is in it:
///
///     L_j = L_parent * w_j / (sum of w over the active children of the parent),  L_root = T           (6.1, 6.3)
///     sum(x) + sum(sigma) + tokens of queued packets = T                        after every event
///
/// Tokens are counted in integers of 2^-16 token, so the sum is T exactly, however long it runs. sigma of the root
/// starts at T. An interior node is active while a leaf below it is; it draws its height from its parent's sigma when
/// it becomes active, and passes all that it has up when it has lost its last leaf. What a node holds beyond its
/// height and does not need for a debt of its own (sigma > 0) goes up as well.
#ifndef MSFRS_AQM_BUCKET_TREE_H
#define MSFRS_AQM_BUCKET_TREE_H

#include "aqm/weighted_set.h"

#include <algorithm>
#include <cstdint>

namespace msfrs {

using Tokens = int64_t;
constexpr Tokens Token = 1 << 16; ///< one token: a packet, or a byte

struct Node;

/// A child of a node. Zeroed state is right for one that is not active.
struct Member {
    Node *parent;
    Node *node;  ///< itself if it is an interior node, null for a leaf
    Place place; ///< among the parent's children; held while it is active
};

/// An active child: what the algorithms touch for every packet, close together.
struct Bucket {
    Tokens tokens;  ///< x_j; of an interior node all that it holds, its sigma included
    double weight;
    Member *member;
    Place *place;
};

/// An interior node, or the root (without a parent).
struct Node : Member {
    Tokens sigma;
    WeightedSet<Bucket> children; ///< those that are active
    const msfrs_class *cls;       ///< null for the root
    Place turn;                   ///< whose turn it is, for SFED's rounds
    Tokens due;                   ///< what that one is still to get
};

class BucketTree {
public:
    explicit BucketTree(const Tokens total): total_(total), root_() { root_.sigma = total; }
    BucketTree(const BucketTree &) = delete;
    BucketTree &operator=(const BucketTree &) = delete;

    Node &root() { return root_; }
    Tokens total() const { return total_; } ///< T
    static Bucket &bucketOf(const Member &m) { return m.parent->children.at(m.place); }

    /// L of an active node; real.
    double heightOf(const Node &n) const
    {
        if (!n.parent)
            return static_cast<double>(total_);
        return heightOf(*n.parent) * bucketOf(n).weight / n.parent->children.total();
    }
    /// L_j of an active child. At least the smallest amount, so that a share of it is always defined.
    Tokens height(const Node &parent, const Bucket &b) const
    {
        return std::max<Tokens>(static_cast<Tokens>(heightOf(parent) * b.weight / parent.children.total()), 1);
    }

    /// Makes m active, and the nodes above it: it gets a full bucket, drawn from sigma.
    Bucket &open(Member &m, const double weight)
    {
        auto &parent = *m.parent;
        if (parent.parent && !parent.place.held())
            open(parent, parent.cls->weight);
        auto &b = parent.children.add({0, weight, &m, &m.place});
        b.tokens = height(parent, b);
        parent.sigma -= b.tokens;
        if (m.node)
            m.node->sigma = b.tokens; // nothing of it is in buckets yet
        return b;
    }

    /// Takes an active child out; its actual tokens go to sigma. A node without children goes the same way.
    void close(Member &m)
    {
        auto &parent = *m.parent;
        parent.sigma += bucketOf(m).tokens;
        if (m.node)
            m.node->sigma = 0;
        parent.children.remove(m.place);
        if (parent.children.empty() && parent.parent)
            close(parent);
    }

    void reweigh(Member &m, const double weight)
    {
        auto moved = bucketOf(m);
        moved.weight = weight;
        m.parent->children.remove(m.place);
        m.parent->children.add(moved);
    }

    /// Gathers what an active child has beyond its height: all of it from a leaf, from a node what it can spare.
    void gather(Node &parent, Bucket &b)
    {
        const Tokens beyond = b.tokens - height(parent, b);
        const Tokens excess = b.member->node ? std::min(beyond, b.member->node->sigma) : beyond;
        if (excess <= 0)
            return;
        b.tokens -= excess;
        parent.sigma += excess;
        if (b.member->node)
            b.member->node->sigma -= excess;
    }
    /// The same for m and, since that fills their sigmas, the nodes above it.
    void gatherUp(Member &m)
    {
        for (Member *one = &m; one->parent; one = one->parent)
            gather(*one->parent, bucketOf(*one));
    }

    /// Takes tokens out of a leaf's bucket and the tree: a packet is queued with them.
    void spend(const Member &leaf, const Tokens amount)
    {
        for (const Member *m = &leaf; m->parent; m = m->parent)
            bucketOf(*m).tokens -= amount;
    }

    /// Moves tokens from a node's sigma to a child, or back where amount < 0.
    static void move(Node &parent, Bucket &b, const Tokens amount)
    {
        parent.sigma -= amount;
        b.tokens += amount;
        if (b.member->node)
            b.member->node->sigma += amount;
    }

    /// Recounted, for gauges and tests.
    struct Sums {
        uint32_t buckets = 0;
        Tokens inBuckets = 0, sigma = 0;
    };
    void count(Node &n, Sums &sums) const
    {
        sums.sigma += n.sigma;
        n.children.each([&](Bucket &b) {
            if (b.member->node) {
                count(*b.member->node, sums);
            } else {
                ++sums.buckets;
                sums.inBuckets += b.tokens;
            }
        });
    }

private:
    Tokens total_;
    Node root_;
};

} // namespace msfrs

#endif
