// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// pie: proportional integral controller enhanced. Drops arrivals with a probability controlled by the sojourn time of
/// departures.
///
/// Source: Pan, Natarajan, Baker, White, RFC 8033 (2017), sections 4 and 5. Every `update`, where d is the sojourn time
/// of the last departure (0 while nothing is queued) and D the value of d one update before:
///
///     p += (alpha (d - target) + beta (d - D)) / scale(p)     d in seconds; at most 0.02 at once from p = 0.1 on
///     p *= 0.98                                               if d = D = 0
///     scale(p) = 2048, 512, 128, 32, 8, 2, 1                  below 10^-6, 10^-5 ... 10^-1, and beyond
///
/// An arrival passes while any burst allowance is left (`burst` at first, and again once p = 0 and d and D are below
/// half of the target; each update takes off `update`); while D is below half of the target and p < 0.2; and while no
/// more than two full packets are queued. Any other is dropped with probability p, but not before the probabilities
/// since the last drop add up to 0.85, and at the latest when they reach 8.5 (5.4): drops are spread. Up to `mark_most`
/// ECN-capable items are marked instead (5.1).
///
/// The sojourn time is measured by time stamps (4.3 allows it), so no departure rate is estimated. There is no timer:
/// updates that are due are made up for at the next item, with the sojourn time last seen; after a minute without an
/// item the state starts anew. It has no limit of its own: a full buffer is left to the host. Cost: O(1).
#include "aqm/watched.h"
#include "plugin/describe.h"

#include <algorithm>

namespace {

using msfrs::Watched;

struct State {
    msfrs_time nextUpdate; ///< 0: no item has been seen
    msfrs_time burst;      ///< remaining burst allowance, ns
    msfrs_time wait, before; ///< d and D, ns
    double probability;
    double accumulated;    ///< sum of the probabilities since the last drop
};

struct Instance {
    Watched<State> watched;
    msfrs::Dice dice;
    msfrs_time target, update, burst;
    double alpha, beta, markMost;
    bool ecn;
};

/// ns without an item after which the state starts anew (not in the RFC). It bounds the updates to make up for: 4,000
/// at the default.
constexpr msfrs_time Forgotten = 60'000'000'000;

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *, size_t)
{
    auto &self = Self(inst);
    self.watched.init(*host, params);
    self.dice = {host};
    self.target = msfrs::Nanoseconds(params[2].d);
    self.update = msfrs::Nanoseconds(params[3].d);
    self.burst = msfrs::Nanoseconds(params[4].d);
    self.alpha = params[5].d;
    self.beta = params[6].d;
    self.ecn = params[7].i;
    self.markMost = params[8].d / 100;
    return 0;
}

/// How much smaller the steps of a small probability are, to make it as stable as a large one.
double Scale(const double probability)
{
    double scale = 2048, below = 1e-6;
    for (; scale > 2 && probability >= below; below *= 10)
        scale /= 4;
    return probability < 0.1 ? scale : 1;
}

void Update(const Instance &self, State &s, const msfrs_time wait)
{
    const auto seconds = [](const msfrs_time t) { return static_cast<double>(t) * 1e-9; };
    double step = (self.alpha * seconds(wait - self.target) + self.beta * seconds(wait - s.before)) /
                  Scale(s.probability);
    if (s.probability >= 0.1)
        step = std::min(step, 0.02);
    s.probability = std::min(std::max(s.probability + step, 0.0), 1.0);
    if (wait == 0 && s.before == 0)
        s.probability *= 0.98;
    s.burst = std::max<msfrs_time>(s.burst - self.update, 0);
    if (s.probability == 0 && 2 * wait < self.target && 2 * s.before < self.target)
        s.burst = self.burst;
    s.before = wait;
}

/// Makes up for updates that are due.
/// \param empty whether nothing has been queued since the last item
void CatchUp(const Instance &self, State &s, const bool empty, const msfrs_time now)
{
    if (s.nextUpdate == 0 || now - s.nextUpdate > Forgotten) {
        s = State{};
        s.nextUpdate = now + self.update;
        s.burst = self.burst;
    }
    for (; now >= s.nextUpdate; s.nextUpdate += self.update)
        Update(self, s, empty ? 0 : s.wait);
}

/// Whether an arrival is dropped or marked, where the probability counts.
bool Hits(const Instance &self, State &s)
{
    if (s.probability == 0)
        s.accumulated = 0;
    s.accumulated += s.probability;
    if (s.accumulated < 0.85 || (s.accumulated < 8.5 && self.dice.uniform() >= s.probability))
        return false;
    s.accumulated = 0;
    return true;
}

msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now,
                    msfrs_item **)
{
    const auto &self = Self(inst);
    const auto queue = Self(inst).watched.of(*i, *q);
    auto &s = queue.state;
    CatchUp(self, s, queue.items == 0, now);
    const bool calm = 2 * s.before < self.target && s.probability < 0.2;
    if (s.burst > 0 || calm || queue.bytes <= 2 * self.watched.packet() || !Hits(self, s))
        return MSFRS_ACCEPT;
    return self.ecn && (i->flags & MSFRS_ECN_CAPABLE) && s.probability <= self.markMost ? MSFRS_MARK : MSFRS_DROP;
}

msfrs_verdict Dequeued(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now)
{
    const auto &self = Self(inst);
    auto &s = Self(inst).watched.of(*i, *q).state;
    CatchUp(self, s, false, now); // until now it was queued
    s.wait = now - i->enqueued;
    return MSFRS_ACCEPT;
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    const auto *const s = Self(inst).watched.stateOf(c);
    out[0] = s ? 100 * s->probability : 0;
    out[1] = s ? static_cast<double>(s->wait) * 1e-6 : 0;
}

const msfrs_param Params[] = {
    msfrs::QueueParam, msfrs::FullPacketParam,
    {"target", MSFRS_REAL, "ms", "15", 0.001, 1e6, nullptr, "reference queueing delay"},
    {"update", MSFRS_REAL, "ms", "15", 0.1, 1e4, nullptr, "interval between updates of the probability"},
    {"burst", MSFRS_REAL, "ms", "150", 0, 1e6, nullptr,
     "burst allowance: time for which a queue that was short is not dropped from"},
    {"alpha", MSFRS_REAL, "1/s", "0.125", 0, 1000, nullptr,
     "integral gain: change of the probability at an update for each second above target"},
    {"beta", MSFRS_REAL, "1/s", "1.25", 0, 1000, nullptr,
     "proportional gain: the same for each second of growth since the last update"},
    msfrs::EcnParam,
    {"mark_most", MSFRS_REAL, "%", "10", 0, 100, nullptr,
     "probability above which ECN-capable packets are dropped, too"},
};

const msfrs_gauge GaugeTable[] = {
    {"probability", "%", "probability of a drop; not available with one queue for each flow"},
    {"wait", "ms", "sojourn time of the last departure; not available with one queue for each flow"},
};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, Dequeued, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, State, State>(
    "pie", "drops arrivals with a probability controlled by the queueing delay",
    "Pan, Natarajan, Baker, White, Proportional integral controller enhanced (PIE), RFC 8033 (2017)",
    MSFRS_MAY_MARK | MSFRS_NO_LIMIT, Ops, Params, GaugeTable);
