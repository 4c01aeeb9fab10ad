// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// sfed: selective fair early detection, FABA's predecessor. A token bucket for every active flow; tokens are
/// distributed in rounds. A new bucket costs O(flows), since all others are cut to their new height at once.
///
/// Paper: Kamra, Saran, Sen, Shorey, "Fair adaptive bandwidth allocation" (2004), section 4.1; the tree of buckets and
/// the arrival of a packet are in satellites/aqm/bucket_tree.h and satellites/aqm/bucket_aqm.h. At a departure of q tokens:
///
///     sigma = sigma + q
///     while sigma >= q: the next child in the round gets its due; a bucket with L or more is deleted, x_j to sigma
///
/// Tokens that a deletion returns to sigma are distributed in the same rounds. Each bucket is deleted at most once in
/// them, so that a departure distributes no more than T ln(flows) tokens, and on average as many as packets and new
/// buckets take.
///
/// The due of a child is a packet's tokens times its weight over the mean weight: 1 for all where weights are equal, as
/// in the paper; in byte mode a packet is the greater of the departed and a typical one, so that a small one does not
/// start a long round of tiny shares. A child that could not be given all of its due for want of sigma gets the rest
/// next. sigma < 0 is not reclaimed from buckets but restored by departures. An interior node does the same with its
/// own sigma at its turn.
#include "plugin/describe.h"
#include "satellites/aqm/bucket_aqm.h"

namespace {

using namespace msfrs;

class Sfed : public BucketTree {
public:
    Sfed(const Tokens total, const Tokens typical, const Dice &): BucketTree(total), typical_(typical) {}

    void opened(Bucket &) { gatherAll(root()); }

    void distribute(Node &n, const Tokens quantum, uint32_t)
    {
        const Tokens packet = std::max(quantum, typical_);
        // If all children pass their tokens back up, such as a full interior node whose due is less than it can
        // distribute, the round would never end. Rounding can leave them all at their heights.
        for (uint32_t vain = 0; n.sigma >= quantum && vain <= n.children.size() && !n.children.empty();) {
            const auto sigma = n.sigma;
            const auto visited = picks;
            auto &b = turn(n, packet);
            picks += b.node == nullptr;
            const Tokens amount = std::min(n.due, n.sigma);
            n.due -= amount;
            move(b, amount);
            if (b.node)
                distribute(*b.node, quantum, 0);
            else if (b.tokens >= height(b))
                close(b);
            if (!b.active()) {
                n.due = 0;
                --n.turn.slot; // the last child has moved there and has not had its turn in this round
            } else if (b.node) {
                gather(b);
            }
            vain = n.sigma == sigma && picks == visited ? vain + 1 : 0;
        }
    }

    uint64_t picks = 0;

private:
    /// The child whose turn it is: one that is still owed tokens, or the next.
    static Bucket &turn(Node &n, const Tokens packet)
    {
        if (n.due > 0) {
            --n.turn.slot; // the same child, or the one that has moved there
            return n.children.next(n.turn);
        }
        auto &b = n.children.next(n.turn);
        const double share = b.weight * n.children.size() / n.children.total();
        n.due = std::max<Tokens>(static_cast<Tokens>(static_cast<double>(packet) * share), 1);
        return b;
    }

    void gatherAll(Node &n)
    {
        n.children.each([&](Bucket &b) {
            if (b.node)
                gatherAll(*b.node);
            gather(b);
        });
    }

    Tokens typical_;
};

using Plugin = BucketAqm<Sfed>;

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Plugin, Plugin::ClassState, Plugin::FlowState>(
    "sfed", "selective fair early detection: a token bucket for each active flow, filled in rounds",
    "Kamra, Saran, Sen, Shorey, Fair adaptive bandwidth allocation (2004), section 4.1", Plugin::Flags, Plugin::Ops,
    Plugin::Params, Plugin::GaugeTable);
