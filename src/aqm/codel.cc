// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// codel: controlled delay. Decides at the head of a queue, by the sojourn time of the item that leaves.
///
/// Source: Nichols, Jacobson, McGregor, Iyengar, RFC 8289 (2018), section 5. For each item whose turn has come:
///
///     above    its sojourn time is `target` or longer, more than a full packet is left behind it, and both have held
///              for every item since `interval` ago at least
///     not dropping, above:     drop it, and begin to drop:
///                              count = drops of the last time except the first, if those were more than 1 and ended
///                              less than 16 intervals ago, else 1;  next = now + interval / sqrt(count)
///     dropping, above, now >= next:  drop it; count + 1, next = next + interval / sqrt(count), until next > now
///     dropping, not above:     stop dropping
///
/// The gap between drops shrinks with the square root of their number, so that a TCP's rate falls linearly. ECN-capable
/// items are marked instead of dropped (ecn=on), by the same law.
///
/// Behind scheduler fq this is FQ-CoDel (RFC 8290). It has no limit of its own: a full buffer is left to the host.
/// Requests wait for seconds where packets wait for milliseconds: set both times accordingly.
/// Cost: O(1), and a square root for each drop.
#include "aqm/watched.h"
#include "plugin/describe.h"

#include <cmath>
#include <utility>

namespace {

using msfrs::Watched;

struct State {
    msfrs_time firstAbove; ///< when `interval` above the target is reached; 0: not above
    msfrs_time next;       ///< when to drop the next
    uint32_t count;        ///< its value when `dropping` began, plus drops since then
    uint32_t begun;        ///< `count` when `dropping` began
    bool dropping;
    bool unscheduled;      ///< one was dropped, and the item behind it decides whether to schedule another
};

struct Instance {
    Watched<State> watched;
    msfrs_time target, interval;
    bool ecn;
    uint64_t judged; ///< dropped or marked

    msfrs_time after(const msfrs_time t, const uint32_t count) const
    {
        return t + static_cast<msfrs_time>(static_cast<double>(interval) / std::sqrt(count));
    }
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    auto &self = Self(inst);
    self.watched.init(*host, params);
    self.target = msfrs::Nanoseconds(params[2].d);
    self.interval = msfrs::Nanoseconds(params[3].d);
    self.ecn = params[4].i;
    if (self.target >= self.interval) {
        std::snprintf(err, length, "target=%g must be less than interval=%g", params[2].d, params[3].d);
        return -1;
    }
    return 0;
}

msfrs_verdict Admit(void *, msfrs_item *, const msfrs_queue_view *, msfrs_time, msfrs_item **) { return MSFRS_ACCEPT; }

bool Above(const Instance &self, const Watched<State>::Queue &queue, const msfrs_time waited, const msfrs_time now)
{
    auto &first = queue.state.firstAbove;
    if (waited < self.target || queue.bytes <= self.watched.packet())
        first = 0;
    else if (first == 0)
        first = now + self.interval;
    else
        return now >= first;
    return false;
}

bool Drops(const Instance &self, State &s, const bool above, const msfrs_time now)
{
    if (!above) {
        s.dropping = false;
        return false;
    }
    if (!s.dropping) {
        const uint32_t drops = s.count - s.begun;
        s.begun = s.count = drops > 1 && now - s.next < 16 * self.interval ? drops : 1;
        s.next = self.after(now, s.count);
        s.dropping = true;
        s.unscheduled = false;
        return true;
    }
    if (std::exchange(s.unscheduled, false))
        s.next = self.after(s.next, s.count);
    if (now < s.next)
        return false;
    ++s.count;
    s.unscheduled = true;
    return true;
}

msfrs_verdict Dequeued(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now)
{
    auto &self = Self(inst);
    const auto queue = self.watched.of(*i, *q);
    if (!Drops(self, queue.state, Above(self, queue, now - i->enqueued, now), now))
        return MSFRS_ACCEPT;
    ++self.judged;
    return self.ecn && (i->flags & MSFRS_ECN_CAPABLE) ? MSFRS_MARK : MSFRS_DROP;
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    const auto *const s = Self(inst).watched.stateOf(c);
    out[0] = c ? 0 : static_cast<double>(Self(inst).judged);
    out[1] = s && s->dropping ? s->count : 0;
}

const msfrs_param Params[] = {
    msfrs::QueueParam, msfrs::FullPacketParam,
    {"target", MSFRS_REAL, "ms", "5", 0.001, 1e6, nullptr,
     "acceptable standing queueing delay; at least the transmission time of a full packet"},
    {"interval", MSFRS_REAL, "ms", "100", 0.01, 1e7, nullptr,
     "time for which the delay may exceed target before a drop; at least the RTT of most connections"},
    msfrs::EcnParam,
};

const msfrs_gauge GaugeTable[] = {
    {"judged", "items", "dropped or marked"},
    {"count", "items",
     "drop count of the control law while it drops; 0 if it does not, or with one queue for each flow"},
};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, Dequeued, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, State, State>(
    "codel", "controlled delay: drops at the head of a queue whose delay stays above a target",
    "Nichols, Jacobson, McGregor, Iyengar, Controlled delay active queue management, RFC 8289 (2018)",
    MSFRS_MAY_MARK | MSFRS_NO_LIMIT, Ops, Params, GaugeTable);
