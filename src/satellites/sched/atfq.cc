// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// atfq: active time fairness queueing. Flows get equal active time, and the packets of a scheduling loop are put in
/// the order that leaves the resources idle for the shortest time.
///
/// Paper: Zhang, Qi, Guo, Li, Li, Jin, "ATFQ: a fair and efficient packet scheduling method in multi-resource
/// environments", IEEE TNSM 12 (2015). A flow's active time F is when its last packet would leave the last resource
/// if the flow were alone (no buffers between the resources):
///
///     F(p^{k+1}) - F(p^k) = L(p^k, 1) + gap(p^k, p^{k+1}) + sum_b L(p^{k+1}, b) - sum_b L(p^k, b)     (3)-(5)
///     F(p^1) = the greatest F of the packets in service, for a flow that becomes active                  (1)
///     next loop: the x packets with the least F, or all with F in [T1, T2), in the order of algorithm 1
///
/// Interpretations of the paper:
///   - A flow may have several packets in a loop. ("At most one packet of each flow" contradicts the paper's own
///     figures; flow_order=on enforces that rule, for flows whose packets must not be reordered. The loop then ends
///     where a flow's second packet would be next, since skipping it would be a round robin of packets. Without it,
///     packets of a flow that need the same times still keep their order.)
///   - The virtual packet carries the B of the last packet into the next loop, eq. (9), whatever the time between them.
///   - The greatest F is that of all packets picked so far: V never decreases. A flow that becomes active again does
///     not get a smaller F than (3)-(5) would give it, so that no flow gains by pausing.
///   - Ties in F go to the flow that was added first; within the loop gilmore_gomory.h has the rule.
/// Beyond the paper:
///   - Weights: a flow's active time grows by the above divided by its class's weight times its own. A new weight
///     applies from the packet after the next one.
///   - m > 2 resources, where the optimum is NP-hard: each term n of the gap in (3) is a shop of two machines, with
///     A = L(p,1) + ... + L(p,n-1) and B = L(p,2) + ... + L(p,n). Of the m-1 orders that are optimal for one term the
///     best one overall is taken, or the order of the timestamps if it is better: the optimum if one term dominates, as
///     in the paper's (7) and (8).
///   - An empty packet, with no time on any resource, adds one unit of time, so that a flow of them cannot go first for
///     ever. Any other packet adds the value of (3)-(5), even 0: its time counts with the packets behind it.
///   - A packet that leaves the queue unserved returns its active time; its loop is not reordered.
///
/// Times are whole numbers of 10^-4 microseconds (multi_resource.h). Cost: O(x log flows + m x log x) per loop of x,
/// at its first pick; O(1) at the others.
#include "plugin/describe.h"
#include "satellites/sched/gilmore_gomory.h"
#include "sched/heap.h"
#include "satellites/sched/multi_resource.h"

#include <cstdio>
#include <new>
#include <numeric>
#include <utility>

namespace {

using namespace msfrs;

enum Loop { Packets, Domain, Strict };
/// Packets of a loop, regardless of its time domain. It bounds the memory and the time of a loop's first pick.
constexpr int64_t MostPackets = 4096;

struct FlowState {
    msfrs_flow *flow;
    uint64_t number;  ///< order in which flows were added
    msfrs_item *next; ///< first packet in the queue not taken by a loop
    uint32_t taken;   ///< number of packets at the head of the queue taken by a loop
    uint32_t place;
    bool started;     ///< whether `last` is a packet
    uint32_t member;  ///< position of the last packet taken in the loop being gathered, plus 1
    Times last;       ///< of the last packet taken
    Times coming;     ///< of `next`
    double share;     ///< weight on which perTick is based
    int64_t perTick;  ///< StampPerTick()
    Stamp clock;      ///< F of the last packet taken
    Stamp floor;      ///< V when the queue was last empty
    Stamp stamp;      ///< F of `next`
};

struct ItemState {
    uint32_t place; ///< position in the loop's order, plus 1; 0 while in no loop
    Stamp finish;   ///< F
    Stamp spent;    ///< amount by which it advanced its flow's clock
};

struct Traits {
    static uint32_t &Place(FlowState &f) { return f.place; }
    static double Key(const FlowState &f) { return static_cast<double>(f.stamp); }
    static bool Before(const FlowState &a, const FlowState &b) // equal doubles may hide a difference
    {
        return a.stamp != b.stamp ? a.stamp < b.stamp : a.number < b.number;
    }
};

/// One packet of the loop that is being gathered.
struct Member {
    msfrs_item *item;
    Times times;
    uint32_t group; ///< first of the adjacent packets in the flow's queue that need the same times
    uint32_t next;  ///< in the first of a group: the member that goes next
    uint32_t after; ///< the following member of the group
};

struct Instance {
    int64_t loop, packets, flowOrder, rate;
    Stamp domain;
    uint32_t resources;
    uint64_t flows, loops;            ///< so far
    size_t known;                     ///< existing flows
    Stamp virtualTime;                ///< V
    Times last;                       ///< of the last packet picked: p_N' of eq. (9)
    Heap<FlowState, Traits> waiting;  ///< flows with a packet not taken by a loop
    std::vector<msfrs_item *> order;  ///< of the loop; null: picked or removed
    size_t cursor;
    std::vector<Member> members;
    std::vector<Job> jobs;
    std::vector<uint32_t> best, tried;
    GilmoreGomory gilmoreGomory;
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }
ItemState &StateOf(const msfrs_item *const i) { return *static_cast<ItemState *>(i->state); }

int64_t PerTick(FlowState &flow)
{
    const double share = flow.flow->cls->weight * flow.flow->weight;
    if (share != flow.share) { // a division: cached until the weight changes
        flow.share = share;
        flow.perTick = StampPerTick(share);
    }
    return flow.perTick;
}

/// F of the flow's next packet, by (3)-(5) and (1).
Stamp FinishOf(const Instance &self, FlowState &flow, const Times &times)
{
    const auto m = self.resources;
    if (!flow.started)
        return flow.floor;
    const auto needs = times.sum(0, m);
    const auto growth = needs ? flow.last.on[0] + Gap(flow.last, times, m) + needs - flow.last.sum(0, m) : 1;
    return std::max(flow.floor, flow.clock + ToStamp(growth, PerTick(flow)));
}

/// Updates the flow's position among the waiting ones after its next packet or its clock has changed.
void Restamp(Instance &self, FlowState &flow)
{
    if (flow.next) {
        flow.coming = TimesOf(*flow.next, self.resources, self.rate);
        flow.stamp = FinishOf(self, flow, flow.coming);
    }
    self.waiting.settle(flow, flow.next != nullptr);
}

/// Advances the flow's clock by a packet.
void Spend(FlowState &flow, msfrs_item &item, const Times &times, const Stamp finish)
{
    auto &state = StateOf(&item);
    state.finish = finish;
    state.spent = finish - flow.clock;
    flow.clock = finish;
    flow.last = times;
    flow.started = true;
}

/// Maximum number of packets in a loop.
size_t MostOf(const Instance &self)
{
    return static_cast<size_t>(self.loop == Strict ? 1 : self.loop == Packets ? self.packets : MostPackets);
}

/// Collects the packets of the next loop, in the order of their F; they stay in their queues until they are picked.
void Gather(Instance &self)
{
    self.members.clear();
    const auto most = MostOf(self);
    Stamp end = 0; // T2; T1 is T2 - domain
    if (self.loop == Domain)
        end = (self.waiting.top()->stamp / self.domain + 1) * self.domain;
    while (!self.waiting.empty() && self.members.size() < most) {
        auto &flow = *self.waiting.top();
        if ((self.loop == Domain && flow.stamp >= end) || (self.flowOrder && flow.member))
            break;
        const auto item = flow.next;
        const auto place = static_cast<uint32_t>(self.members.size());
        Member member{item, flow.coming, place, place, 0};
        if (flow.member && std::equal(std::begin(member.times.on), std::end(member.times.on), flow.last.on)) {
            member.group = self.members[flow.member - 1].group;
            self.members[flow.member - 1].after = place;
        }
        flow.member = place + 1;
        self.members.push_back(member);
        Spend(flow, *item, member.times, flow.stamp);
        flow.next = item->next;
        ++flow.taken;
        Restamp(self, flow);
    }
    for (const auto &m : self.members)
        StateOf(m.item->flow).member = 0;
}

/// Idle time of the first resource if the members are served in this order.
Ticks IdleTimeOf(const Instance &self, const std::vector<uint32_t> &order)
{
    Ticks idle = 0;
    const Times *before = &self.last;
    for (const auto k : order) {
        idle += Gap(*before, self.members[k].times, self.resources);
        before = &self.members[k].times;
    }
    return idle;
}

/// Fills self.best with the order of the members that leaves the first resource idle for the shortest time.
void Arrange(Instance &self)
{
    const auto &members = self.members;
    self.best.resize(members.size());
    std::iota(self.best.begin(), self.best.end(), 0);
    if (members.size() < 2)
        return;
    Ticks least = self.resources > 2 ? IdleTimeOf(self, self.best) : 0;
    for (uint32_t n = 1; n < self.resources; ++n) {
        self.jobs.clear();
        for (const auto &m : members)
            self.jobs.push_back({m.times.sum(0, n), m.times.sum(1, n + 1)});
        self.gilmoreGomory.order(self.jobs, self.last.sum(1, n + 1), self.tried);
        const auto idle = self.resources > 2 ? IdleTimeOf(self, self.tried) : -1; // with two it is optimal
        if (idle < least) {
            least = idle;
            self.best.swap(self.tried);
        }
    }
}

void PlanLoop(Instance &self)
{
    Gather(self);
    Arrange(self);
    ++self.loops;
    self.cursor = 0;
    self.order.clear();
    auto &members = self.members;
    // Of packets that differ only in age the oldest goes first, so that no packet of a flow is reordered needlessly.
    // The members of a group are in `members` in the order of their ages.
    for (const auto k : self.best) {
        auto &next = members[members[k].group].next;
        const auto item = members[next].item;
        self.order.push_back(item);
        StateOf(item).place = static_cast<uint32_t>(self.order.size());
        next = members[next].after;
    }
}

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t errlen)
{
    const auto self = new (inst) Instance();
    self->loop = params[0].i;
    self->packets = params[1].i;
    constexpr int64_t TicksPerNanosecond = TicksPerSecond / 1'000'000'000;
    self->domain = ToStamp(params[2].i * TicksPerNanosecond, int64_t(1) << StampFraction);
    self->flowOrder = params[3].i;
    self->rate = params[4].i;
    self->resources = host->resources;
    try {
        const auto most = MostOf(*self);
        self->members.reserve(most);
        self->order.reserve(most);
        self->jobs.reserve(most);
        self->best.reserve(most);
        self->tried.reserve(most);
        self->gilmoreGomory.reserve(most);
    } catch (const std::bad_alloc &) {
        std::snprintf(err, errlen, "no memory for loops of %zu packets", MostOf(*self));
        self->~Instance();
        return -1;
    }
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

int FlowAdded(void *const inst, msfrs_flow *const f)
{
    StateOf(f).flow = f;
    StateOf(f).number = Self(inst).flows++;
    return MakeRoom(Self(inst).waiting, ++Self(inst).known);
}

void FlowRemoved(void *const inst, msfrs_flow *) { --Self(inst).known; }

/// A flow that is not ahead of V would restart with V anyway.
int FlowForgettable(void *const inst, const msfrs_flow *const f) { return StateOf(f).clock <= Self(inst).virtualTime; }

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    auto &flow = StateOf(i->flow);
    if (i->flow->backlog == 1)
        flow.floor = self.virtualTime;
    if (!flow.next) {
        flow.next = i;
        Restamp(self, flow);
    }
}

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    auto &self = Self(inst);
    for (;; ++self.cursor) {
        if (self.cursor == self.order.size()) {
            if (self.waiting.empty())
                return nullptr;
            PlanLoop(self);
        }
        if (self.order[self.cursor])
            return self.order[self.cursor];
    }
}

/// Records that an item has left the queue; it was already removed. \returns whether a loop had taken it
bool Leave(Instance &self, msfrs_item &item)
{
    auto &flow = StateOf(item.flow);
    if (const auto place = std::exchange(StateOf(&item).place, 0)) {
        self.order[place - 1] = nullptr;
        --flow.taken;
        return true;
    }
    if (flow.next == &item) {
        flow.next = item.flow->head;
        for (auto n = flow.taken; n > 0; --n)
            flow.next = flow.next->next;
    }
    return false;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    auto &flow = StateOf(i->flow);
    const auto times = TimesOf(*i, self.resources, self.rate);
    self.last = times;
    if (Leave(self, *i)) {
        self.virtualTime = std::max(self.virtualTime, StateOf(i).finish);
    } else { // out of turn: its flow pays the same cost as in turn, and V does not follow
        Spend(flow, *i, times, FinishOf(self, flow, times));
        Restamp(self, flow);
    }
}

void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason)
{
    auto &self = Self(inst);
    auto &flow = StateOf(i->flow);
    if (Leave(self, *i))
        flow.clock -= StateOf(i).spent;
    Restamp(self, flow);
}

/// Charges bytes of the flow without an item, which keep the link busy.
void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    auto &self = Self(inst);
    auto &flow = StateOf(f);
    if (resource != 0)
        return;
    flow.clock = std::max(flow.clock, flow.floor) + ToStamp(LinkTime(amount, self.rate), PerTick(flow));
    flow.started = true;
    Restamp(self, flow);
}

void Gauges(void *const inst, const msfrs_class *, double *const out)
{
    const auto &self = Self(inst);
    out[0] = Microseconds(self.virtualTime);
    out[1] = static_cast<double>(self.loops);
}

const msfrs_param Params[] = {
    {"loop", MSFRS_CHOICE, "", "packets", 0, 0, "packets|time|strict",
     "extent of a scheduling loop: a number of packets, a time domain, or one packet (strictest fairness)"},
    {"packets", MSFRS_INT, "packets", "20", 1, MostPackets, nullptr, "packets in a loop, x; for loop=packets"},
    {"domain", MSFRS_INT, "ns", "1000000", 1, 1e11, nullptr, "time domain of a loop, T2 - T1; for loop=time"},
    {"flow_order", MSFRS_BOOL, "", "off", 0, 0, nullptr,
     "end a loop before the second packet of a flow, so that packets of a flow are never reordered"},
    {"rate", MSFRS_INT, "bit/s", "1000000000", 1, 8e11, nullptr,
     "rate of the link, which converts bytes to transmission time"},
};

const msfrs_gauge GaugeTable[] = {
    {"virtual_time", "us", "virtual time V: the greatest active time of a packet picked so far"},
    {"loops", "", "scheduling loops begun"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, nullptr, nullptr, nullptr, FlowAdded, FlowRemoved, FlowForgettable, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, void, FlowState, ItemState>(
    "atfq", "active time fairness queueing: equal active time, in the order that idles the resources least",
    "Zhang et al., ATFQ: a fair and efficient packet scheduling method in multi-resource environments (2015)",
    MSFRS_NEEDS_COST | MSFRS_MULTI_RESOURCE, Ops, Params, GaugeTable);
