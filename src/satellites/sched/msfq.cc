// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfq: minimum starting-tag fair queueing, at two levels: between the classes, and within a class between its flows.
///
/// Paper: Feng, Huang, Chu, "A routing system using minimum starting-tag fair queueing", section 2; the algorithm is
/// that of Chu and Hwang, IEICE Trans. Communications E80-B (10), 1997.
///
///     F(p_0) = 0                                                                         (1)
///     v(t) = min S_j(t) over the backlogged j                                            (2)
///     S(p_k) = max{v(A(p_k)), F(p_k-1)}                                                  (3)
///     F(p_k) = S(p_k) + l_k / r                                                          (4)
///     next: the one with the least F
///
/// The packet in service counts as backlogged in (2). When nothing is queued or in service all tags restart at 0.
/// While a flow stays backlogged v is at most its own S, so that S(p_k) = F(p_k-1): one tag per flow is enough, and
/// only the heads of the queues are in the two heaps, by S and by F. Ties in F go to the flow that has been known
/// longest.
///
/// The paper's bound on fairness (6) holds exactly, its bound on delay (5) does not: a waiting flow with the least S
/// holds v back, by up to its l / r, and flows that become active meanwhile go before one whose tags ran ahead of v.
/// With this amount added for each link the bound held in all runs of test/sched/bounds_test.cc; at most one packet in
/// a hundred needed it.
///
/// Details that the paper leaves open:
///   - r is the weight. The class level gives each class its weight (share=class: called class-based weighted
///     fairness in the MSF-RS paper, whose section 2.3 finds it wrong for users at a gateway), or its weight times its
///     users (share=user: w_i * UC_i, as in msf); the level below gives a flow its weight among those of its class.
///   - With several items in service at once (requests) the last one picked is "the packet in service".
///   - Costs reported afterwards advance the current tag: the rest of the item is the next packet. While no flow is
///     queued v advances with them, since service used while nobody waits is free.
///   - A changed weight applies from the next tag on; the class's own applies at once.
///   - An item costs at least one byte, so that a flow of empty ones cannot go first for ever.
/// Requests are not packets (MSF-RS, section 2.2): F, the time at which an item will end, is not known when a request
/// is picked, so the smaller of two requests does not go first. The shares still hold.
///
/// Cost: O(1) to enqueue to a backlogged flow, otherwise O(log flows of the class + log classes).
#include "plugin/describe.h"
#include "sched/kept.h"
#include "satellites/sched/tag_heap.h"

#include <algorithm>
#include <array>
#include <new>
#include <vector>

namespace {

/// A member of a level. Zeroed memory is a member that was never served.
struct Tagged {
    double tag;      ///< F of its last item; S of its queued one
    uint32_t slot;   ///< slot in its level's heaps
    uint32_t epoch;  ///< Level::epoch of the tag; 0: none
};

/// One level: its backlogged members and its virtual time.
template <class Member>
class Level {
public:
    bool busy() const { return !start_.empty(); }
    /// The backlogged member with the least F; there must be one.
    Member &first() const { return *slots_[finish_.top()].member; }
    /// The cost of its head, and the head itself.
    double firstCost() const { return slots_[finish_.top()].cost; }
    const msfrs_item *firstHead() const { return slots_[finish_.top()].head; }
    bool isFirst(const Member &m) const { return finish_.top() == m.slot; }

    /// \throws std::bad_alloc; no later call does
    void add(Member &m)
    {
        if (free_.empty()) {
            m.slot = static_cast<uint32_t>(slots_.size());
            slots_.push_back({&m, nullptr, 0});
            free_.reserve(slots_.size());
            start_.reserve(m.slot);
            finish_.reserve(m.slot);
        } else {
            m.slot = free_.back();
            free_.pop_back();
            slots_[m.slot] = {&m, nullptr, 0};
        }
    }
    void remove(const Member &m)
    {
        slots_[m.slot].member = nullptr;
        free_.push_back(m.slot);
    }
    /// Visits all members, in the order which decides between equal tags.
    template <class Visit>
    void each(const Visit &visit) const
    {
        for (const auto &slot : slots_) {
            if (slot.member)
                visit(*slot.member);
        }
    }

    /// m has become backlogged.
    /// \param head its next item; \param cost bytes of the item; \param rate of m, > 0
    void wake(Member &m, const msfrs_item *const head, const double cost, const double rate)
    {
        m.tag = std::max(tagOf(m), virtualTime()); // (3)
        stand(m, head, cost, rate);
    }
    /// m stays backlogged; its tag, head or rate has changed.
    void stand(const Member &m, const msfrs_item *const head, const double cost, const double rate)
    {
        slots_[m.slot].head = head;
        slots_[m.slot].cost = cost;
        start_.set(m.slot, m.tag);
        finish_.set(m.slot, m.tag + cost / rate); // (4)
    }
    /// m has no items queued any more.
    void rest(const Member &m)
    {
        start_.erase(m.slot);
        finish_.erase(m.slot);
    }

    /// An item of m enters service.
    void serve(Member &m, const msfrs_item *const item, const double cost)
    {
        serving_ = item;
        servingTag_ = tagOf(m);
        m.tag += cost;
    }
    /// The cost exceeded the one passed to serve(), or was less (negative).
    void charge(Member &m, const msfrs_item *const item, const double cost)
    {
        m.tag = tagOf(m) + cost;
        if (item && item == serving_)
            servingTag_ += cost;
        if (!busy())
            virtualTime_ = std::max(virtualTime_, m.tag);
    }
    void ended(const msfrs_item *const item)
    {
        if (serving_ == item) {
            virtualTime(); // the item counts until now
            serving_ = nullptr;
        }
    }

    /// Nothing is queued or in service: all tags are 0.
    void reset()
    {
        serving_ = nullptr;
        virtualTime_ = 0;
        if (++epoch_ == 0)
            epoch_ = 1;
    }

    /// (2)
    double virtualTime()
    {
        if (busy() || serving_) {
            double least = serving_ ? servingTag_ : start_.topTag();
            if (busy())
                least = std::min(least, start_.topTag());
            virtualTime_ = std::max(virtualTime_, least);
        }
        return virtualTime_;
    }

    /// Saved state of a member, and of the level.
    double saved(const Member &m) const { return m.epoch == epoch_ ? m.tag : 0; }
    double saved() const { return virtualTime_; }
    /// ... and the tag of this item if it is in service.
    double savedTag(const msfrs_item *const item) const { return serving_ == item ? servingTag_ : NotServed; }
    static constexpr double NotServed = -1;
    void restore(Member &m, const double tag)
    {
        m.epoch = epoch_;
        m.tag = tag;
    }
    void restore(const double virtualTime) { virtualTime_ = virtualTime; }
    void restoreTag(const msfrs_item *const item, const double tag)
    {
        if (tag == NotServed)
            return;
        serving_ = item;
        servingTag_ = tag;
    }

    bool carriesNothing(const Member &m) const { return m.epoch != epoch_ || m.tag <= virtualTime_; }

private:
    double tagOf(Member &m)
    {
        if (m.epoch != epoch_) {
            m.epoch = epoch_;
            m.tag = 0; // (1)
        }
        return m.tag;
    }

    msfrs::TagHeap start_, finish_;
    /// Data of a backlogged member, kept compact: the members themselves are scattered in memory.
    struct Slot {
        Member *member;
        const msfrs_item *head;
        double cost;
    };
    std::vector<Slot> slots_;
    std::vector<uint32_t> free_;       ///< slots
    const msfrs_item *serving_ = nullptr;
    double servingTag_ = 0, virtualTime_ = 0;
    uint32_t epoch_ = 1;
};

struct FlowState : Tagged {
    msfrs_flow *flow;
};

struct ClassState : Tagged {
    msfrs_class *cls;
    bool active; ///< whether counted in Instance::active
    Level<FlowState> flows;
};

struct Instance {
    bool perUser;
    uint32_t active; ///< classes with something queued or in service
    Level<ClassState> classes;
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }
FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }

double CostOf(const msfrs_item &i) { return static_cast<double>(std::max<int64_t>(i.est[0], 1)); }

double RateOf(const Instance &self, const msfrs_class &c)
{
    return self.perUser ? c.weight * std::max(c.users, 1u) : c.weight;
}

/// Updates a backlogged flow after any change.
void Stand(const FlowState &f)
{
    StateOf(f.flow->cls).flows.stand(f, f.flow->head, CostOf(*f.flow->head), f.flow->weight);
}

/// Updates a class after any change to it or to its first flow.
void Stand(Instance &self, const ClassState &c)
{
    if (c.cls->backlog > 0)
        self.classes.stand(c, c.flows.firstHead(), c.flows.firstCost(), RateOf(self, *c.cls));
}

/// Updates the levels after an item has left its queue.
void Leave(Instance &self, const msfrs_flow &f)
{
    auto &flow = StateOf(&f);
    auto &cls = StateOf(f.cls);
    if (f.backlog > 0)
        Stand(flow);
    else
        cls.flows.rest(flow);
    if (f.cls->backlog > 0)
        Stand(self, cls);
    else
        self.classes.rest(cls);
}

/// The class has an item queued or in service.
void Activate(Instance &self, ClassState &c)
{
    self.active += !c.active;
    c.active = true;
}

/// Deactivates the class if it has nothing queued or in service.
void Idle(Instance &self, ClassState &c)
{
    if (c.active && c.cls->backlog + c.cls->in_service == 0) {
        c.active = false;
        c.flows.reset();
        if (--self.active == 0)
            self.classes.reset();
    }
}

int Init(void *const inst, const msfrs_host *, const msfrs_value *const params, char *, size_t)
{
    const auto self = new (inst) Instance();
    self->perUser = params[0].i == 1;
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

/// No exception crosses the ABI.
template <class Member>
int Add(Level<Member> &level, Member &m)
{
    try {
        level.add(m);
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

int ClassAdded(void *const inst, msfrs_class *const c)
{
    const auto state = new (c->state) ClassState();
    state->cls = c;
    return Add(Self(inst).classes, *state);
}

void ClassChanged(void *const inst, msfrs_class *const c, double) { Stand(Self(inst), StateOf(c)); }

void ClassRemoved(void *const inst, msfrs_class *const c)
{
    Self(inst).classes.remove(StateOf(c));
    StateOf(c).~ClassState();
}

int FlowAdded(void *, msfrs_flow *const f)
{
    StateOf(f).flow = f;
    return Add(StateOf(f->cls).flows, StateOf(f));
}

void FlowRemoved(void *, msfrs_flow *const f) { StateOf(f->cls).flows.remove(StateOf(f)); }

int FlowForgettable(void *, const msfrs_flow *const f) { return StateOf(f->cls).flows.carriesNothing(StateOf(f)); }

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    const auto &f = *i->flow;
    auto &cls = StateOf(f.cls);
    if (i->seq != i->id) { // a continuation: its previous service has ended
        cls.flows.ended(i);
        self.classes.ended(i);
    }
    Activate(self, cls);
    if (f.backlog > 1 && !self.perUser)
        return;
    if (f.backlog == 1)
        cls.flows.wake(StateOf(&f), f.head, CostOf(*f.head), f.weight);
    if (f.cls->backlog == 1)
        self.classes.wake(cls, f.head, CostOf(*f.head), RateOf(self, *f.cls));
    else if (self.perUser || cls.flows.isFirst(StateOf(&f)))
        Stand(self, cls);
}

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    const auto &classes = Self(inst).classes;
    return classes.busy() ? classes.first().flows.first().flow->head : nullptr;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    const auto &f = *i->flow;
    auto &cls = StateOf(f.cls);
    cls.flows.serve(StateOf(&f), i, CostOf(*i) / f.weight);
    self.classes.serve(cls, i, CostOf(*i) / RateOf(self, *f.cls));
    Leave(self, f);
}

void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason)
{
    Leave(Self(inst), *i->flow);
    Idle(Self(inst), StateOf(i->flow->cls));
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *const i, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    if (resource != 0)
        return;
    auto &self = Self(inst);
    auto &flow = StateOf(f);
    auto &cls = StateOf(f->cls);
    const auto bytes = static_cast<double>(amount);
    if (cls.active) {
        cls.flows.charge(flow, i, bytes / f->weight);
        if (f->backlog > 0)
            Stand(flow);
    }
    if (self.active > 0) {
        self.classes.charge(cls, i, bytes / RateOf(self, *f->cls));
        Stand(self, cls);
    }
}

void Done(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    auto &cls = StateOf(i->flow->cls);
    cls.flows.ended(i);
    self.classes.ended(i);
    if (self.perUser)
        Stand(self, cls); // UC_i may have changed
    Idle(self, cls);
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    auto &classes = Self(inst).classes;
    out[0] = c ? classes.saved(StateOf(c)) : classes.virtualTime();
}

constexpr uint32_t Keeps = 1; ///< msfrs_plugin::keeps: version of the saved data

/// Saves flows in the order in which they have been known, which decides between equal tags.
void Save(void *const inst, const msfrs_move *const move, msfrs_time)
{
    const auto &self = Self(inst);
    msfrs::Put(*move, {}, std::array{self.classes.saved()});
    for (uint32_t n = 0; n < move->n_classes; ++n) {
        const auto &c = StateOf(move->classes[n]);
        msfrs::Put(*move, {c.cls, nullptr, nullptr}, std::array{self.classes.saved(c), c.flows.saved()});
        c.flows.each([&](const FlowState &f) {
            msfrs::Put(*move, {nullptr, f.flow, nullptr}, std::array{c.flows.saved(f)});
        });
    }
    for (uint32_t n = 0; n < move->n_served; ++n) {
        auto *const i = move->served[n];
        msfrs::Put(*move, {nullptr, nullptr, i},
                   std::array{StateOf(i->flow->cls).flows.savedTag(i), self.classes.savedTag(i)});
    }
}

int Restore(void *const inst, const msfrs_owner *const whose, const double *const figures, const uint32_t n, msfrs_time)
{
    auto &self = Self(inst);
    if (n != (whose->item || whose->cls ? 2 : 1))
        return -1;
    if (whose->item) {
        StateOf(whose->item->flow->cls).flows.restoreTag(whose->item, figures[0]);
        self.classes.restoreTag(whose->item, figures[1]);
    } else if (whose->flow) {
        StateOf(whose->flow->cls).flows.restore(StateOf(whose->flow), figures[0]);
    } else if (whose->cls) {
        self.classes.restore(StateOf(whose->cls), figures[0]);
        StateOf(whose->cls).flows.restore(figures[1]);
    } else {
        self.classes.restore(figures[0]);
    }
    return 0;
}

void Resumed(void *const inst, msfrs_item *const i, const int served, msfrs_time)
{
    auto &self = Self(inst);
    const auto &f = *i->flow;
    auto &cls = StateOf(f.cls);
    Activate(self, cls);
    if (!served && f.backlog == 1)
        Stand(StateOf(&f));
    if (self.perUser || (!served && (f.cls->backlog == 1 || cls.flows.isFirst(StateOf(&f)))))
        Stand(self, cls);
}

const msfrs_param Params[] = {
    {"share", MSFRS_CHOICE, "", "class", 0, 0, "class|user", "owner of the weight: the class, or each of its users"},
};

const msfrs_gauge GaugeTable[] = {
    {"tag", "bytes", "tag of a class, bytes over weight; of the instance: virtual time"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, FlowAdded, FlowRemoved, FlowForgettable, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, Done, Gauges, nullptr, Save, Restore, Resumed,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, ClassState, FlowState>(
    "msfq", "minimum starting-tag fair queueing between classes and, within a class, between flows",
    "Feng, Huang, Chu, A routing system using minimum starting-tag fair queueing; Chu, Hwang (1997)", MSFRS_FLOW_ORDER,
    Ops, Params, GaugeTable, Keeps);
