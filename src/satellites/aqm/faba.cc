// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// faba: fair adaptive bandwidth allocation. A token bucket for every active flow; tokens are distributed at random at
/// every departure: O(1) for each packet, whatever the number of flows.
///
/// Paper: Kamra, Saran, Sen, Shorey (2004), section 4.2; the tree of buckets and the arrival of a packet are in
/// satellites/aqm/bucket_tree.h and satellites/aqm/bucket_aqm.h. At a departure of q tokens (1, or the packet's bytes), with Q packets left:
///
///     sigma = sigma + q
///     beta = floor(|sigma| / (p max(Q, 1))) + 1 times: a child at random, in proportion to its weight;
///         sigma > 0:  q tokens (or the rest of sigma) to it; a bucket with more than L is deleted, x_j to sigma
///         sigma < 0:  q tokens (or what sigma lacks) from it, if it has as many
///         sigma = 0:  nothing, and the loop ends
///
/// In the last case the paper contradicts itself: its pseudocode takes a token if sigma is not above 0, its text only
/// if tokens are lacking, sigma below 0. This code follows the text. A token taken at 0 would lie unused in sigma until
/// the next departure, and would come from the bucket of a flow that has done nothing.
///
/// p is 1 or, in byte mode, the greater of q and a typical packet's bytes: with q alone, the departure of a small
/// packet would visit all the buckets to distribute the tokens of a large one in tiny pieces.
///
/// sigma never changes its sign here. Heights are recomputed after every deletion. An interior node that is drawn does
/// the same with its own sigma and its own Q.
///
/// The random number that selects a bucket is taken from the host four draws before it is used, so that the bucket it
/// will most likely select can be prefetched (satellites/aqm/weighted_set.h). A node's first four numbers are the same for any
/// seed, and if a host changes its sequence, the change takes effect from the fifth draw on. Each draw is uniform over
/// the children that exist when it is made, even if they have changed since its number was taken.
///
/// A departure visits 1 to 1.6 buckets on average. It visits more if buckets are opened and closed all the time while
/// little is queued, since each moves its whole height: measured 2.7 for 300 flows in bursts of 10 before a buffer of
/// 200, and up to 8 in a tree with a class that does not use its share. The paper's section 5.2 has the same proviso.
#include "plugin/describe.h"
#include "satellites/aqm/bucket_aqm.h"

#include <cstdlib>

namespace {

using namespace msfrs;

class Faba : public BucketTree {
public:
    Faba(const Tokens total, const Tokens typical, const Dice &dice):
        BucketTree(total), typical_(typical), dice_(dice) {}

    void opened(Bucket &) {} // excess of the other buckets over their new heights is gathered when they are visited

    void distribute(Node &n, const Tokens quantum, const uint32_t queued)
    {
        const int64_t beta = std::abs(n.sigma) / std::max(quantum, typical_) / std::max(queued, 1u) + 1;
        for (int64_t i = 0; i < beta && n.sigma != 0 && !n.children.empty(); ++i) {
            auto &b = n.children.draw(dice_);
            picks += b.node == nullptr;
            if (n.sigma < 0 && b.tokens < quantum)
                continue;
            move(b, n.sigma > 0 ? std::min(quantum, n.sigma) : -std::min(quantum, -n.sigma));
            if (b.node) {
                distribute(*b.node, quantum, b.node->cls->backlog);
                if (b.active())
                    gather(b);
            } else if (b.tokens > height(b)) {
                close(b);
            }
        }
    }

    uint64_t picks = 0;

private:
    Tokens typical_;
    Dice dice_;
};

using Plugin = BucketAqm<Faba>;

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Plugin, Plugin::ClassState, Plugin::FlowState>(
    "faba", "fair adaptive bandwidth allocation: a token bucket for each active flow, in O(1)",
    "Kamra, Saran, Sen, Shorey, Fair adaptive bandwidth allocation (2004), section 4.2", Plugin::Flags, Plugin::Ops,
    Plugin::Params, Plugin::GaugeTable);
