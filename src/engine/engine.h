// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The engine: owns items, flows, classes, their queues and counters, and drives one scheduler and at most one
/// AQM. It reads no clock and does no I/O; whoever holds it passes `now`.
///
/// States of an item and the calls that change them:
///
///     offer() -> queued --pick()--> in service --done()--> (freed)
///        |         ^  |                |  |
///     dropped      |  +--remove(), pick() where the AQM drops it--> (freed, dropped)
///                  +-----requeue()-----+
///
/// Invariants, checked by auditLaws(): offered = dropped + queued + in service + done, in items and in
/// estimated cost; every class's and flow's counters are the sums over its items; an item is in its flow's
/// list exactly while it is queued; a class or flow with items is never freed.
#ifndef MSFRS_ENGINE_ENGINE_H
#define MSFRS_ENGINE_ENGINE_H

#include "engine/pool.h"
#include "plugin/loader.h"
#include "plugin/msfrs_plugin.h"
#include "window/service_lag.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msfrs {

/// Items and their estimated cost in resource 0.
struct Tally {
    uint64_t items = 0;
    int64_t cost = 0;
};

/// Where every item that was ever offered is now.
struct EngineTotals {
    Tally offered, dropped, queued, inService, done;
};

/// A plugin answered what it must not. what() names it, the call and the answer. The engine keeps its laws, but is not
/// to be asked again: its host ends what is in service (isQueued() tells) and frees it.
class PluginError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct FlowAccount;
class PushOut;

/// A flow with the name it was found by and figures for reports.
struct NamedFlow : msfrs_flow {
    msfrs_time idleSince = 0;     ///< when its last item ended
    FlowAccount *account = nullptr;
    uint32_t party = 0;           ///< its host's; 0 at first
    int64_t owed = 0;             ///< likewise; goes on in another engine
    ServiceLag::User lag;         ///< its host's; goes on in another engine
    uint64_t counted = 0;         ///< its host's: the last count of users in which it was
    struct {
        double length = 0;
        uint32_t place = 0;
    } buffered;                   ///< PushOut's

    const std::string &name() const;
    uint64_t bytes() const;       ///< charged in resource 0 since the flow was created
};

/// What the engine's host lends it and all plugins.
struct EngineHost {
    std::function<void(int level, const std::string &)> log;
    std::function<uint64_t()> random;
};

class Engine {
public:
    /// A plugin with its checked parameters.
    struct Part {
        PluginPtr plugin;
        std::vector<msfrs_value> params;
    };

    /// Whether an estimate is the whole cost (packets), or what an item costs is told by charge() (requests).
    enum class Cost { Exact, Measured };

    /// \param aqm its plugin may be null: everything is admitted
    /// \param resources how many of est[] are in use, 1..MSFRS_RESOURCES
    /// \param limit hard limit of queued items, 0: none
    /// \throws ConfigError when a plugin refuses its parameters or does not fit the host or its partner
    Engine(Part sched, Part aqm, Cost, uint32_t resources, uint32_t limit, EngineHost);
    /// Queued items are freed without a word to their hosts; what is in service the host must end before.
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    /// From now on an item that comes when `limit` is reached is not simply dropped: what has most of the buffer for
    /// its weight loses its last one; see PushOut. Before the first class, and where there is no AQM with a limit.
    /// \param packet est[0] of a full packet, > 0
    void pushOut(int64_t packet);

    /// \param name unique; \param weight > 0
    /// \param flags enum msfrs_class_flags; \param parent an interior class, or null
    /// \throws ConfigError when the parent is not an interior class
    msfrs_class *addClass(const std::string &name, double weight, uint32_t flags = 0, msfrs_class *parent = nullptr);
    void setWeight(msfrs_class &, double weight);
    /// \returns false, and nothing happens, while the class has items or classes below it
    bool removeClass(msfrs_class &);
    const std::vector<msfrs_class *> &classes() const { return classList_; }

    /// Finds or creates the flow of a class (not an interior one) by name.
    NamedFlow &flow(msfrs_class &, std::string_view name, double weight = 1.0);
    /// The flow, if there is one of that name.
    NamedFlow *knownFlow(const msfrs_class &, std::string_view name) const;
    /// How many flows there are, idle ones included.
    size_t flows() const { return flows_; }
    /// Calls `visit` for every flow of a class.
    void eachFlow(const msfrs_class &, const std::function<void(const NamedFlow &)> &visit) const;
    /// Frees flows that have been idle since before `before` if the scheduler need not remember them, and those
    /// that have been idle since before `anyway` whatever it remembers: memory must not grow with everyone who
    /// was ever seen.
    void forgetIdleFlows(msfrs_time before, msfrs_time anyway);

    enum class Offer { Queued, Marked, Dropped };
    /// Offers an item of estimated cost est[0..resources-1].
    /// \param victim asked about a queued item that is to be dropped, too (CHOKe) or instead (pushOut()): false keeps
    ///        it, after true it is freed
    /// \param flags enum msfrs_item_flags
    /// \param remaining as expect() takes it
    /// \returns Queued or Marked with `item` set, or Dropped with `item` null
    /// \throws PluginError, and the item is dropped
    Offer offer(msfrs_flow &, const int64_t *est, void *host, msfrs_time now, msfrs_item *&item,
                const std::function<bool(msfrs_item &)> &victim = {}, uint32_t flags = 0,
                int64_t remaining = MSFRS_UNKNOWN);
    /// Takes in an item that is not to be judged: work that must not wait, or that goes on after a pause. What comes
    /// from another engine: engine/migrate.h.
    /// \param attained cost charged to it so far
    /// \param remaining as expect() takes it
    msfrs_item *adopt(msfrs_flow &, const int64_t *est, void *host, msfrs_time now, int64_t attained, bool inService,
                      int64_t remaining = MSFRS_UNKNOWN);

    /// Told of an item that the AQM drops instead of letting it go, by the host's own pointer: it is freed already.
    /// May call the engine.
    using Lost = std::function<void(void *host)>;
    /// Takes the next item that the AQM lets go into service. nullptr: nothing suits; with a backlog and PICK_ANY
    /// `wakeAt` says when.
    /// \throws PluginError, and no item has been taken, or one whose host is not told, which is in service
    msfrs_item *pick(msfrs_time now, msfrs_pick mode, msfrs_time &wakeAt, const Lost &lost = {});
    /// Takes a certain queued item into service, whatever the AQM says but for a mark.
    /// \throws PluginError, and it is in service
    void pickThis(msfrs_item &, msfrs_time now);
    /// An item in service goes back to its queue, its estimate anew.
    /// \param coming in resource 0 of the turn that it had, >= 0: charged now, and used while it waits or later
    void requeue(msfrs_item &, const int64_t *est, msfrs_time now, int64_t coming = 0);
    /// amount >= 0 of resource 0 was used by a queued item: what was to come, and what is beyond that for its flow.
    void chargeQueued(msfrs_item &, int64_t amount, msfrs_time now);
    /// What is still to be charged to an item, queued or in service, in resource 0, as far as anybody knows: >= 0, or
    /// MSFRS_UNKNOWN. Stays so until the next call; charge() does not count it down. Only with Cost::Measured.
    void expect(msfrs_item &, int64_t remaining, msfrs_time now);
    /// amount >= 0 of a resource was used by an item in service.
    void charge(msfrs_item &, uint32_t resource, int64_t amount, msfrs_time now);
    /// amount >= 0 of resource 0 was used for a flow by no item.
    void chargeFlow(msfrs_flow &, int64_t amount, msfrs_time now);
    /// The same where another party has served the flow: it counts in the order, and not in NamedFlow::bytes(). A
    /// negative amount takes back what was charged too much.
    /// \param served whether items of the flow had it; if not, it was traffic that nobody holds back
    void chargeElsewhere(msfrs_flow &, int64_t amount, msfrs_time now, bool served = false);
    /// A queued item leaves and is freed.
    void remove(msfrs_item &, msfrs_time now, msfrs_reason);
    /// An item goes on with another flow, queued or in service as it is. What it used stays with the flow for which it
    /// was used; what was charged in advance and is not used goes along. To the scheduler it is a new item, which comes
    /// before the old one goes: it queues behind those that came before, and neither flow seems to have been away
    /// (migrate.cc). No AQM is asked; for one, and in totals(), the old item has left and the new one was never judged.
    /// Only with Cost::Measured.
    /// \returns the item that it is now, with the same host pointer; `item` is freed
    msfrs_item *move(msfrs_item &item, msfrs_flow &to, msfrs_time now);
    /// An item in service ends and is freed.
    void done(msfrs_item &, msfrs_time now);

    bool isQueued(const msfrs_item &) const;
    /// Whether the AQM has marked it, as it came or as its turn came.
    bool isMarked(const msfrs_item &) const;
    /// The greatest `now` of all calls. One that is less counts as this: where calls are made within calls, the outer
    /// one goes on with its own.
    msfrs_time latest() const { return latest_; }
    /// What an item in service was charged in advance and has not used yet, of a resource.
    int64_t unused(const msfrs_item &, uint32_t resource = 0) const;
    const EngineTotals &totals() const { return totals_; }
    /// There is a backlog of so many items in other engines for what this one serves, too. (First: none.)
    void waitElsewhere(const uint64_t items) { elsewhere_ = items; }
    /// So many others serve the same users on the link, and they and this one take turns.
    void share(const uint64_t others) { sharers_ = others; }
    const msfrs_plugin &scheduler() const { return sched_.plugin->ops(); }
    const msfrs_plugin *aqm() const { return aqm_.plugin ? &aqm_.plugin->ops() : nullptr; }
    /// The scheduler's gauges of a class (or of the instance: null), in its table's order.
    std::vector<double> gauges(const msfrs_class *) const;
    /// The AQM's, likewise; none without one.
    std::vector<double> aqmGauges(const msfrs_class *) const;
    /// Bytes the engine holds for one queued item, for reports.
    size_t itemSize() const;

    /// Recounts everything. \returns an empty string, or the first law that does not hold
    std::string auditLaws() const;

private:
    friend class Migration; ///< migrate.cc
    struct ClassRecord;
    struct ItemRecord;
    struct ItemCosts;
    struct Instance; ///< one plugin instance: its state and host table

    ItemCosts &costsOf(const msfrs_item &) const;
    int64_t offeredCost(const ItemRecord &) const;
    size_t statesSize() const;
    ItemRecord *createItem(msfrs_flow &, const int64_t *est, void *host, msfrs_time now);
    void freeItem(ItemRecord &);
    void freeFlow(ClassRecord &, NamedFlow &);
    void freeClass(msfrs_class &);
    void link(msfrs_item &);
    void unlink(msfrs_item &);
    void enterQueue(ItemRecord &, msfrs_time now);
    void leaveQueue(ItemRecord &, msfrs_time now);
    void beginService(ItemRecord &);
    void enterService(ItemRecord &, msfrs_time now);
    void leaveService(msfrs_item &);
    bool letsGo(ItemRecord &, msfrs_time now);
    void drop(ItemRecord &, msfrs_time now, msfrs_reason);
    msfrs_time at(msfrs_time now) { return latest_ = now > latest_ ? now : latest_; }
    static void countIdle(const msfrs_flow &);
    void settle(ItemRecord &, msfrs_time now);
    void use(msfrs_item &, uint32_t resource, int64_t amount, msfrs_time now);
    msfrs_queue_view view() const;
    bool makeRoom(msfrs_flow &, int64_t cost, msfrs_time now, const std::function<bool(msfrs_item &)> &victim);

    Part sched_, aqm_;
    Cost cost_;
    uint32_t resources_, limit_;
    EngineHost host_;
    std::unique_ptr<Instance> schedInst_, aqmInst_;
    std::vector<std::unique_ptr<ClassRecord>> records_; ///< by index; holes are null
    std::vector<msfrs_class *> classList_;              ///< those that live
    // What every item needs of the plugins, at hand.
    const msfrs_sched_ops *schedOps_;
    const msfrs_aqm_ops *aqmOps_ = nullptr;
    void *schedState_, *aqmState_ = nullptr;
    size_t schedItem_, aqmItem_ = 0;                    ///< where in an item its plugin's state begins; 0: it has none
    size_t costsAt_;                                    ///< where in an item ItemCosts begins; zeroed up to there
    std::unique_ptr<PushOut> pushOut_;                  ///< null: what comes when `limit` is reached is dropped
    bool draws_;                                        ///< the AQM may draw among the queued items
    uint64_t elsewhere_ = 0, sharers_ = 0;              ///< see msfrs_host
    double virtualTime_ = 0;                            ///< the scheduler's, see msfrs_host
    Pool itemPool_, flowPool_;
    std::vector<ItemRecord *> drawable_;                ///< the queued items, for that draw
    EngineTotals totals_;
    int64_t backlogCost_ = 0;                           ///< sum of est[0] of the queued items
    uint64_t nextId_ = 1;
    size_t flows_ = 0;
    msfrs_time idleSince_ = 0, latest_ = 0;
};

} // namespace msfrs

#endif
