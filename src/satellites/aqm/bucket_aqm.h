// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The common part of the FABA and SFED plugins, around a BucketTree. They differ only in how tokens are distributed.
///
/// An arrival of flow j, in this order (sections 4.1 and 4.2, and details that the paper leaves open):
///   - if flow j has no bucket, one is created, before any coin is tossed; tokens beyond its height go to sigma;
///   - a full buffer drops the packet and takes no token;
///   - f_p(x_j / L_j) drops: the gentle profile, 0 above lambda1, maxp at lambda2, 1 at 0. Above lambda2 a packet that
///     can carry a mark is marked instead, and pays its tokens;
///   - a packet pays its tokens on entry: 1, or its bytes. If the bucket has less, the packet is dropped. A bucket
///     whose height is below the packet's tokens need only be full, and its balance becomes negative. (Otherwise a flow
///     would be starved if a packet is larger than L, or if there are more flows than packets fit.)
///   - an arrival at an empty queue is accepted and borrows the missing tokens from sigma. In the paper's fluid model
///     all buckets are full when nothing is queued. Without this rule a flow with an empty bucket could not use an idle
///     link, and no departure would ever fill its bucket.
/// An item that leaves the queue, sent or not, returns its tokens to the root's sigma, which are then distributed.
///
/// Owners of buckets: with bucket=flow every flow, weighted by its own weight times its class's (6.1); with
/// bucket=class each class (6.2); with bucket=tree the flows within the tree of classes (6.3). A class with
/// MSFRS_AGGREGATE is always one leaf. A changed weight of a class applies at once, that of a flow at its next arrival.
#pragma once

#include "satellites/aqm/bucket_tree.h"
#include "satellites/aqm/red.h"

#include <new>

namespace msfrs {

/// \tparam Algorithm derived from BucketTree, made of (total, tokens of a typical packet, const Dice &);
///         `void opened(Bucket &)` after a bucket was created;
///         `void distribute(Node &root, Tokens quantum, uint32_t queued)` after quantum tokens returned to sigma;
///         `uint64_t picks`: number of buckets visited to distribute tokens
template <class Algorithm>
class BucketAqm {
public:
    static const msfrs_param Params[9];
    static const msfrs_gauge GaugeTable[6];
    static const msfrs_aqm_ops Ops;
    static constexpr uint32_t Flags = MSFRS_MAY_MARK | MSFRS_HIERARCHY;

    /// State of a flow, stored by the engine.
    struct FlowState {
        Bucket own;
        Bucket *bucket; ///< its own or its class's
    };
    using ClassState = Node;

private:
    enum Who { Flow, Class, Tree };

    Buffer buffer_;
    Dice dice_;
    int64_t who_;
    double lambda1_, lambda2_, maxp_;
    bool ecn_;
    uint64_t departures_ = 0;
    union { Algorithm tree_; }; ///< constructed once the parameters are checked
    bool made_ = false;

    static BucketAqm &Self(void *const inst) { return *static_cast<BucketAqm *>(inst); }
    static FlowState &Of(const msfrs_flow &f) { return *static_cast<FlowState *>(f.aqm_state); }
    static Node &Of(const msfrs_class &c) { return *static_cast<Node *>(c.aqm_state); }

    BucketAqm() {}
    ~BucketAqm()
    {
        if (made_)
            tree_.~Algorithm();
    }

    static int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const p, char *const err,
                    const size_t length)
    {
        auto &self = *new (inst) BucketAqm();
        if (!self.buffer_.init(*host, p, err, length))
            return -1;
        if (p[5].d <= p[6].d) {
            std::snprintf(err, length, "lambda1=%g must be greater than lambda2=%g", p[5].d, p[6].d);
            return -1;
        }
        self.dice_ = {host};
        self.who_ = p[3].i;
        self.lambda1_ = p[5].d;
        self.lambda2_ = p[6].d;
        self.maxp_ = p[7].d / 100;
        self.ecn_ = p[8].i;
        new (&self.tree_) Algorithm(static_cast<Tokens>(p[4].d * static_cast<double>(self.buffer_.limit * Token)),
                                    self.buffer_.packet * Token, self.dice_);
        self.made_ = true;
        return 0;
    }

    static void Fini(void *const inst) { Self(inst).~BucketAqm(); }

    static int ClassAdded(void *const inst, msfrs_class *const c)
    {
        auto &self = Self(inst);
        auto &n = *new (c->aqm_state) Node();
        n.cls = c;
        n.parent = self.who_ == Tree && c->parent ? &Of(*c->parent) : &self.tree_.root();
        const bool leaf = self.who_ == Class || (c->flags & MSFRS_AGGREGATE);
        n.node = leaf ? nullptr : &n;
        return 0;
    }

    static void ClassChanged(void *const inst, msfrs_class *const c, double)
    {
        if (Of(*c).active())
            Self(inst).tree_.reweigh(Of(*c), c->weight);
    }

    static void ClassRemoved(void *const inst, msfrs_class *const c)
    {
        if (Of(*c).active())
            Self(inst).tree_.close(Of(*c));
        Of(*c).~Node();
    }

    static int FlowAdded(void *const inst, msfrs_flow *const f)
    {
        auto &self = Self(inst);
        auto &cls = Of(*f->cls);
        auto &state = *new (f->aqm_state) FlowState();
        state.bucket = cls.node ? &state.own : &cls;
        state.own.parent = self.who_ == Tree ? &cls : &self.tree_.root();
        return 0;
    }

    static void FlowRemoved(void *const inst, msfrs_flow *const f)
    {
        if (Of(*f).own.active())
            Self(inst).tree_.close(Of(*f).own);
    }

    double weightOf(const msfrs_flow &f) const
    {
        if (Of(f).bucket != &Of(f).own)
            return f.cls->weight;
        return who_ == Tree ? f.weight : f.weight * f.cls->weight;
    }

    static msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, msfrs_time,
                               msfrs_item **)
    {
        try {
            return Self(inst).admit(*i, *q);
        } catch (const std::bad_alloc &) { // no exception may cross the ABI
            return MSFRS_DROP;
        }
    }

    msfrs_verdict admit(const msfrs_item &i, const msfrs_queue_view &q)
    {
        auto &b = *Of(*i.flow).bucket;
        const double weight = weightOf(*i.flow);
        if (!b.active()) {
            tree_.open(b, weight);
            tree_.opened(b);
        } else if (b.weight != weight) {
            tree_.reweigh(b, weight);
        }
        const Tokens height = tree_.height(b);
        tree_.gather(b, height);
        for (Node *n = b.parent; n->parent; n = n->parent) // their sigmas have increased
            tree_.gather(*n);
        if (buffer_.full(q, i))
            return MSFRS_DROP;

        const Tokens price = buffer_.sizeOf(i) * Token;
        const Tokens lacks = std::min(price, height) - b.tokens;
        auto verdict = MSFRS_ACCEPT;
        if (q.length == 0) {
            if (lacks > 0)
                tree_.move(b, lacks);
        } else if (lacks > 0) {
            return MSFRS_DROP;
        } else if (static_cast<double>(b.tokens) < lambda1_ * static_cast<double>(height)) {
            const double fill = static_cast<double>(b.tokens) / static_cast<double>(height);
            const double p = GentleProfile(-fill, -lambda1_, -lambda2_, 0, maxp_);
            if (dice_.uniform() < p) {
                if (!ecn_ || !(i.flags & MSFRS_ECN_CAPABLE) || fill <= lambda2_)
                    return MSFRS_DROP;
                verdict = MSFRS_MARK;
            }
        }
        tree_.spend(b, price);
        return verdict;
    }

    void leave(const msfrs_item &i, const msfrs_queue_view &q)
    {
        const Tokens price = buffer_.sizeOf(i) * Token;
        ++departures_;
        tree_.root().sigma += price;
        if (price > 0) // in byte mode an item without size moves no tokens
            tree_.distribute(tree_.root(), price, q.length);
    }

    static msfrs_verdict Dequeued(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, msfrs_time)
    {
        Self(inst).leave(*i, *q);
        return MSFRS_ACCEPT;
    }
    static void Removed(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, msfrs_time,
                        msfrs_reason)
    {
        Self(inst).leave(*i, *q);
    }

    static void Gauges(void *const inst, const msfrs_class *const c, double *const out)
    {
        auto &self = Self(inst);
        const auto tokens = [](const Tokens t) { return static_cast<double>(t) / Token; };
        BucketTree::Sums sums;
        if (!c) {
            self.tree_.count(self.tree_.root(), sums);
        } else if (Of(*c).active()) {
            if (Of(*c).node)
                self.tree_.count(Of(*c), sums);
            else
                sums = {1, Of(*c).tokens, 0};
        }
        out[0] = sums.buckets;
        out[1] = tokens(sums.inBuckets);
        out[2] = tokens(sums.sigma);
        out[3] = !c ? tokens(self.tree_.total()) : Of(*c).active() ? tokens(self.tree_.height(Of(*c))) : 0;
        out[4] = c ? 0 : static_cast<double>(self.departures_);
        out[5] = c ? 0 : static_cast<double>(self.tree_.picks);
    }
};

template <class Algorithm>
const msfrs_param BucketAqm<Algorithm>::Params[9] = {
    ModeParam, LimitParam, PacketParam,
    {"bucket", MSFRS_CHOICE, "", "flow", 0, 0, "flow|class|tree",
     "owner of a token bucket: each flow, each class, or each flow within the tree of classes"},
    {"alpha", MSFRS_REAL, "", "1", 0.01, 10, nullptr,
     "number of tokens, T, as a multiple of limit; the paper: 1 to 1.2"},
    {"lambda1", MSFRS_REAL, "", "0.5", 0, 1, nullptr,
     "fill level of a bucket below which its packets are dropped at random"},
    {"lambda2", MSFRS_REAL, "", "0.25", 0, 1, nullptr,
     "fill level at which the drop probability is maxp; it rises to 1 at an empty bucket"},
    {"maxp", MSFRS_REAL, "%", "2", 0, 100, nullptr, "drop probability at lambda2"}, EcnParam,
};

template <class Algorithm>
const msfrs_gauge BucketAqm<Algorithm>::GaugeTable[6] = {
    {"buckets", "", "token buckets: one for each active flow or aggregate"},
    {"tokens", "packets or bytes", "tokens in the buckets"},
    {"sigma", "packets or bytes", "tokens owed to the buckets; below 0: owed by them"},
    {"height", "packets or bytes", "tokens that a class may hold; of the instance: T, the number of all tokens"},
    {"departures", "packets", "packets that have left the queue"},
    {"picks", "", "buckets visited to distribute tokens"},
};

template <class Algorithm>
const msfrs_aqm_ops BucketAqm<Algorithm>::Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, FlowAdded, FlowRemoved, Admit, Dequeued, Removed, Gauges,
};

} // namespace msfrs
