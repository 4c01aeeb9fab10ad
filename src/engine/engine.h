// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The engine: owns items, flows, classes, their queues and counters, and drives one scheduler and at most one AQM. It
/// reads no clock and does no I/O; its host passes `now`.
///
/// States of an item and the calls that change them:
///
///     offer() -> queued --pick()--> in service --done()--> (freed)
///        |         ^  |                |  |
///     dropped      |  +--remove(), pick() where the AQM drops it--> (freed, dropped)
///                  +-----requeue()-----+
///
/// Invariants, checked by AuditLaws() of the tests: offered = dropped + queued + in service + done, in items and in
/// estimated cost; every class's and flow's counters are the sums over its items; an item is in its flow's
/// list exactly while it is queued; a class or flow with items is never freed.
#pragma once

#include "engine/pool.h"
#include "plugin/loader.h"
#include "plugin/msfrs_plugin.h"
#include "window/service_lag.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
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

/// A plugin gave an invalid answer. what() names the plugin, the call and the answer. The engine's laws still hold, but
/// it must not be used further: its host ends the items in service (isQueued() tells which) and frees it.
class PluginError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct FlowAccount;
class PushOut;

/// A flow with its name and figures for reports.
struct NamedFlow : msfrs_flow {
    msfrs_time idleSince = 0;     ///< when its last item ended
    FlowAccount *account = nullptr;
    uint32_t party = 0;           ///< its host's; initially 0
    int64_t owed = 0;             ///< likewise; carried over to another engine
    ServiceLag::User lag;         ///< its host's; carried over to another engine
    uint64_t counted = 0;         ///< its host's: the last count of users that met it
    uint32_t responses = 0;       ///< likewise: those that had begun, in that count
    double uses = 0;              ///< likewise: what it counted with, at most its weight
    struct {
        double length = 0;
        uint32_t place = 0;
    } buffered;                   ///< PushOut's

    const std::string &name() const;
    uint64_t bytes() const;       ///< charged in resource 0 since the flow was created
};

/// What the engine's host provides for it and all plugins.
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

    /// Whether the estimate is the cost (packets), or charge() reports the cost (requests).
    enum class Cost { Exact, Measured };

    /// \param aqm with a null plugin everything is admitted
    /// \param resources how many of est[] are in use, 1..MSFRS_RESOURCES
    /// \param limit hard limit of queued items, 0: none
    /// \throws ConfigError when a plugin refuses its parameters or does not fit the host or its partner
    Engine(Part sched, Part aqm, Cost, uint32_t resources, uint32_t limit, EngineHost);
    /// Frees queued items without notifying their hosts. The host must have ended the items in service.
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    /// From now on an arrival at a full queue (`limit`) is not simply dropped: the flow with most of the buffer for its
    /// weight loses its last item; see PushOut. Call before the first class, and only without an AQM that has a limit.
    /// \param packet est[0] of a full packet, > 0
    void pushOut(int64_t packet);

    /// \param name unique; \param weight > 0
    /// \param flags enum msfrs_class_flags; \param parent an interior class, or null
    /// \throws ConfigError when the parent is not an interior class
    msfrs_class *addClass(const std::string &name, double weight, uint32_t flags = 0, msfrs_class *parent = nullptr);
    void setWeight(msfrs_class &, double weight);
    /// \returns false, and nothing happens, while the class has items or child classes
    bool removeClass(msfrs_class &);
    const std::vector<msfrs_class *> &classes() const { return classList_; }

    /// Finds or creates the flow of a class (not an interior one) by name.
    NamedFlow &flow(msfrs_class &, std::string_view name, double weight = 1.0);
    /// The flow of that name, or null.
    NamedFlow *knownFlow(const msfrs_class &, std::string_view name) const;
    /// Number of flows, including idle ones.
    size_t flows() const { return flows_; }
    /// Calls `visit` for every flow of a class.
    void eachFlow(const msfrs_class &, const std::function<void(const NamedFlow &)> &visit) const;
    /// Frees flows that have been idle since before `before` if the scheduler need not remember them, and all that have
    /// been idle since before `anyway`: memory must not grow with every user ever seen.
    void forgetIdleFlows(msfrs_time before, msfrs_time anyway);

    enum class Offer { Queued, Marked, Dropped };
    /// Offers an item of estimated cost est[0..resources-1].
    /// \param victim asked about a queued item that is to be dropped as well (CHOKe) or instead (pushOut()): false
    ///        keeps it, true frees it
    /// \param flags enum msfrs_item_flags
    /// \param remaining as expect() takes it
    /// \returns Queued or Marked with `item` set, or Dropped with `item` null
    /// \throws PluginError; the item is dropped
    Offer offer(msfrs_flow &, const int64_t *est, void *host, msfrs_time now, msfrs_item *&item,
                const std::function<bool(msfrs_item &)> &victim = {}, uint32_t flags = 0,
                int64_t remaining = MSFRS_UNKNOWN);
    /// Takes in an item without asking the AQM: work that must not wait, or that continues after a pause. For items of
    /// another engine see engine/migrate.h.
    /// \param attained cost charged to it so far
    /// \param remaining as expect() takes it
    msfrs_item *adopt(msfrs_flow &, const int64_t *est, void *host, msfrs_time now, int64_t attained, bool inService,
                      int64_t remaining = MSFRS_UNKNOWN);

    /// Called for an item that the AQM drops when its turn comes, with the host's own pointer; the item is freed
    /// already. May call the engine.
    using Lost = std::function<void(void *host)>;
    /// Takes the next item that the AQM lets pass into service. nullptr: none is suitable; with a backlog and PICK_ANY
    /// `wakeAt` is when to ask again.
    /// \throws PluginError; no item was taken, or one is in service whose host was not told
    msfrs_item *pick(msfrs_time now, msfrs_pick mode, msfrs_time &wakeAt, const Lost &lost = {});
    /// Takes a given queued item into service. The AQM may mark it but not drop it.
    /// \throws PluginError; the item is in service
    void pickThis(msfrs_item &, msfrs_time now);
    /// Returns an item in service to its queue with a new estimate.
    /// \param coming bytes still to arrive in its turn, in resource 0, >= 0: charged now, used while it waits or later
    void requeue(msfrs_item &, const int64_t *est, msfrs_time now, int64_t coming = 0);
    /// amount >= 0 of resource 0 was used by a queued item: first from `coming`, then charged to its flow.
    void chargeQueued(msfrs_item &, int64_t amount, msfrs_time now);
    /// Sets the estimate of the remaining cost of an item in resource 0, queued or in service: >= 0, or MSFRS_UNKNOWN.
    /// It holds until the next call; charge() does not count it down. Only with Cost::Measured.
    void expect(msfrs_item &, int64_t remaining, msfrs_time now);
    /// amount >= 0 of a resource was used by an item in service.
    void charge(msfrs_item &, uint32_t resource, int64_t amount, msfrs_time now);
    /// amount >= 0 of resource 0 was used for a flow, but by none of its items.
    void chargeFlow(msfrs_flow &, int64_t amount, msfrs_time now);
    /// The same for service by another party: it counts in the order, but not in NamedFlow::bytes(). A negative amount
    /// refunds an overcharge.
    /// \param served whether items of the flow used it; if not, it was traffic that no scheduler holds back
    void chargeElsewhere(msfrs_flow &, int64_t amount, msfrs_time now, bool served = false);
    /// Removes a queued item and frees it.
    void remove(msfrs_item &, msfrs_time now, msfrs_reason);
    /// Moves an item to another flow, queued or in service as it is. Its past service stays charged to the old flow;
    /// unused advance charges move along. To the scheduler it is a new item, which arrives before the old one leaves:
    /// it queues behind earlier arrivals, and neither flow seems to have been idle. To the AQM, and in totals(), the
    /// old item has left and the new one was never judged. Only with Cost::Measured.
    /// \returns the new item, with the same host pointer; `item` is freed
    msfrs_item *move(msfrs_item &item, msfrs_flow &to, msfrs_time now);
    /// What an item in service was charged in advance for resource 0 is not refunded.
    void forfeit(msfrs_item &);
    /// Ends an item in service and frees it.
    void done(msfrs_item &, msfrs_time now);

    bool isQueued(const msfrs_item &) const;
    /// Whether the AQM has marked it, on arrival or when its turn came.
    bool isMarked(const msfrs_item &) const;
    /// The greatest `now` of all calls. A smaller `now` counts as this one: in nested calls the outer call continues
    /// with its own.
    msfrs_time latest() const { return latest_; }
    /// What an item in service was charged in advance for a resource and has not used yet.
    int64_t unused(const msfrs_item &, uint32_t resource = 0) const;
    const EngineTotals &totals() const { return totals_; }
    /// Sets the backlog, in items, at other engines that serve the same link. (Initially 0.)
    void waitElsewhere(const uint64_t items) { elsewhere_ = items; }
    /// Sets how many others serve the same users on the link by turns with this engine.
    void share(const uint64_t others) { sharers_ = others; }
    const msfrs_plugin &scheduler() const { return sched_.plugin->ops(); }
    const msfrs_plugin *aqm() const { return aqm_.plugin ? &aqm_.plugin->ops() : nullptr; }
    /// The scheduler's gauges of a class (null: of the instance), in the order of its table.
    std::vector<double> gauges(const msfrs_class *) const;
    /// The same of the AQM; empty without one.
    std::vector<double> aqmGauges(const msfrs_class *) const;
    /// Bytes of memory for one queued item, for reports.
    size_t itemSize() const;

private:
    friend class Migration; ///< migrate.cc
    friend std::string AuditLaws(const Engine &); ///< test/support/audit.h
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
    static void countUser(const msfrs_flow &, int by);
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
    std::vector<msfrs_class *> classList_;              ///< those that exist
    // What every item needs of the plugins, cached.
    const msfrs_sched_ops *schedOps_;
    const msfrs_aqm_ops *aqmOps_ = nullptr;
    void *schedState_, *aqmState_ = nullptr;
    size_t schedItem_, aqmItem_ = 0;                    ///< offset of its plugin's state in an item; 0: it has none
    size_t costsAt_;                                    ///< offset of ItemCosts in an item; zeroed up to there
    std::unique_ptr<PushOut> pushOut_;                  ///< null: arrivals at `limit` are dropped
    bool draws_;                                        ///< the AQM may draw among the queued items
    uint64_t elsewhere_ = 0, sharers_ = 0;              ///< see msfrs_host
    double virtualTime_ = 0;                            ///< the scheduler's, see msfrs_host
    Pool itemPool_, flowPool_;
    std::vector<ItemRecord *> drawable_;                ///< the queued items, for such draws
    EngineTotals totals_;
    int64_t backlogCost_ = 0;                           ///< sum of est[0] of the queued items
    uint64_t nextId_ = 1;
    size_t flows_ = 0;
    msfrs_time idleSince_ = 0, latest_ = 0;
};

} // namespace msfrs
