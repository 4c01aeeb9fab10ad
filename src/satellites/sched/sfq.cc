// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// sfq: stochastic fairness queueing as in Linux's sch_sfq: the flows of a class are hashed into buckets, which are
/// served by deficit round robin. Between the classes the same round robin goes by weight, as in drr.
///
/// Source: P. E. McKenney, "Stochastic fairness queueing", Interworking: Research and Experience 2, 1991, and Linux's
/// tc-sfq(8). A bucket is one first-come-first-served queue of all flows that hash to it: flows that collide have one
/// share in common. Flow weights have no effect, since a bucket has none. The share between classes is drr's.
///
/// After `perturb` seconds the hash of a class takes new salt, and queued items are moved to their new buckets, each
/// flow's items in their order. Time is passed in by the host: without a call nothing is due. Deficits and debts are
/// then reset, as in Linux, because they belonged to buckets that no longer exist.
///
/// Not supported: Linux's limit, depth and flows, and its drop from the longest queue. A scheduler does not drop: the
/// host has the limit, and an AQM selects the packet to drop.
///
/// Cost: O(1) as in drr; a perturbation is O(divisor + items queued).
#include "plugin/describe.h"
#include "sched/class_round.h"
#include "sched/item_list.h"

#include <cstdlib>
#include <cstring>

namespace {

struct Bucket : msfrs::Turn {
    msfrs::ItemList items;

    bool queued() const { return !items.empty(); }
};

struct FlowState {
    uint32_t bucket; ///< kept until the salt changes, even if the flow's key does
    uint32_t salts;  ///< ClassState::salts when it was hashed; 0: not yet
};

struct ClassState : msfrs::Turn {
    msfrs_class *cls;
    msfrs::Round<Bucket> members;
    Bucket *buckets;     ///< `divisor` of them
    uint64_t salt;
    uint32_t salts;      ///< number of salts so far; 0: none yet
    msfrs_time nextSalt;

    bool queued() const { return cls->backlog > 0; }
};

struct Instance : msfrs::ClassRound<ClassState> {
    uint32_t divisor;
    msfrs_time perturb;  ///< ns, 0: never
    const msfrs_host *host;
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }

/// The final steps of splitmix64: every bit of the key and of the salt affects the result.
uint64_t Mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

Bucket &BucketOf(const Instance &self, const msfrs_flow &f)
{
    auto &flow = *static_cast<FlowState *>(f.state);
    auto &c = StateOf(f.cls);
    if (flow.salts != c.salts || c.salts == 0) {
        flow.salts = c.salts;
        flow.bucket = static_cast<uint32_t>(Mixed(f.key ^ c.salt) % self.divisor);
    }
    return c.buckets[flow.bucket];
}

/// Takes new salt when it is due.
void Perturb(Instance &self, ClassState &c, const msfrs_time now)
{
    if (c.salts > 0 && (self.perturb == 0 || now < c.nextSalt))
        return;
    c.salt = self.host->random(self.host->ctx);
    c.nextSalt = now + self.perturb;
    if (++c.salts == 0)
        c.salts = 1;
    msfrs::ItemList all{};
    for (uint32_t n = 0; n < self.divisor && c.members.busy(); ++n) {
        auto &items = c.buckets[n].items;
        while (const auto i = items.head()) {
            items.erase(*i);
            all.append(*i);
        }
    }
    std::memset(static_cast<void *>(c.buckets), 0, self.divisor * sizeof(Bucket));
    c.members = {};
    while (const auto i = all.head()) {
        all.erase(*i);
        auto &bucket = BucketOf(self, *i->flow);
        if (!bucket.queued())
            c.members.ready(bucket);
        bucket.items.append(*i);
    }
}

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *, size_t)
{
    auto &self = Self(inst);
    self.init(params);
    self.divisor = static_cast<uint32_t>(params[2].i);
    self.perturb = params[3].i * 1'000'000'000;
    self.host = host;
    return 0;
}

int ClassAdded(void *const inst, msfrs_class *const c)
{
    auto &state = StateOf(c);
    state.cls = c;
    state.buckets = static_cast<Bucket *>(std::calloc(Self(inst).divisor, sizeof(Bucket)));
    return state.buckets ? 0 : -1;
}

void ClassRemoved(void *const inst, msfrs_class *const c)
{
    Self(inst).forget(StateOf(c));
    std::free(StateOf(c).buckets);
}

void Enqueued(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    auto &c = StateOf(i->flow->cls);
    Perturb(self, c, now);
    auto &bucket = BucketOf(self, *i->flow);
    const bool first = !bucket.queued();
    bucket.items.append(*i);
    self.enqueued(c, bucket, first);
}

msfrs_item *Pick(void *const inst, const msfrs_time now, msfrs_pick, msfrs_time *)
{
    auto &self = Self(inst);
    return self.next([&](ClassState &c) {
        Perturb(self, c, now);
        return c.members.select([](const Bucket &b) { return msfrs::CostOf(*b.items.head()); },
                                [&](const Bucket &) { return self.quantum(); }).items.head();
    });
}

void Leave(Instance &self, msfrs_item &i, const double cost)
{
    auto &bucket = BucketOf(self, *i.flow);
    bucket.items.erase(i);
    self.left(StateOf(i.flow->cls), bucket, bucket.items.empty(), cost);
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time) { Leave(Self(inst), *i, msfrs::CostOf(*i)); }
void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason) { Leave(Self(inst), *i, 0); }

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    auto &self = Self(inst);
    if (resource == 0)
        self.charged(StateOf(f->cls), BucketOf(self, *f), static_cast<double>(amount));
}

void Gauges(void *, const msfrs_class *const c, double *const out) { out[0] = c ? StateOf(c).deficit : 0; }

constexpr msfrs_param Params[] = {
    msfrs::QuantumParam,
    msfrs::ShareParam,
    {"divisor", MSFRS_INT, "buckets", "1024", 1, 65536, nullptr, "hash buckets in each class"},
    {"perturb", MSFRS_INT, "s", "60", 0, 86400, nullptr, "interval between changes of the hash's salt; 0: never"},
};

const msfrs_sched_ops Ops = {
    Init, nullptr, ClassAdded, nullptr, ClassRemoved, nullptr, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, ClassState, FlowState, msfrs::ItemLinks>(
    "sfq", "stochastic fairness queueing: flows hashed into buckets that take turns, classes by weight",
    "McKenney, Stochastic fairness queueing (1991); Linux's sch_sfq", MSFRS_FLOW_ORDER, Ops, Params,
    msfrs::DeficitGauge);
