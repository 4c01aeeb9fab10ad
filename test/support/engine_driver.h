// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Drives an engine with any scheduler (and any AQM), and checks after every call what must hold for all plugins:
/// AuditLaws(), the driver's own record of every item's state, work conservation, and the order within a flow
/// if the plugin promises one.
#pragma once

#include "engine/engine.h"
#include "support/host.h"
#include "support/plugins.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace msfrs::test {

/// The driver's record of an item.
struct Tracked {
    msfrs_item *item = nullptr;
    msfrs_class *cls = nullptr;
    std::string name;
    int64_t size = 0;     ///< total cost of its service
    int64_t charged = 0;
    size_t place = 0;     ///< in Driver::queued() or served()
    bool inService = false, marked = false, markedInTurn = false;
    std::vector<int64_t> processing; ///< value of Driver::processing at its arrival
};

class Driver {
public:
    struct Setup {
        Engine::Cost cost = Engine::Cost::Measured;
        std::optional<Variant> aqm;
        uint32_t limit = 0, resources = 1;
        int64_t pushOut = 0;  ///< Engine::pushOut(), if not 0
        uint64_t seed = 1;
        /// For measured costs only: the estimate with which an item of this size is offered
        int64_t (*estimate)(int64_t size) = [](int64_t) { return int64_t(0); };
    };

    explicit Driver(const Variant &sched): Driver(sched, Setup()) {}
    Driver(const Variant &sched, Setup);
    ~Driver();

    msfrs_class &addClass(const std::string &name, double weight, uint32_t flags = 0, msfrs_class *parent = nullptr);
    /// \returns nullptr if it was dropped
    Tracked *arrive(msfrs_class &, const std::string &user, int64_t size, const std::string &name = "");
    /// \returns nullptr if no item may be picked now; wakeAt() then tells when
    Tracked *pick(msfrs_pick mode = MSFRS_PICK_ANY);
    /// pick(PICK_ANY); if the plugin asks to wait, time advances. Fails the test if it never picks.
    Tracked *pickInTime();
    /// Charges `amount` arriving bytes, as the host would; without effect if costs are exact.
    void charge(Tracked &, int64_t amount);
    /// Updates the bytes remaining, as the host would; measured costs only.
    void expect(Tracked &, int64_t remaining);
    void requeue(Tracked &);
    /// Moves an item to the flow of a user of some class.
    void move(Tracked &, msfrs_class &, const std::string &user);
    void done(Tracked &);
    void remove(Tracked &, msfrs_reason = MSFRS_GONE);
    /// Charges the rest of its size and ends it.
    void finish(Tracked &);
    /// Serves all queued items and those in service to their end.
    void drain();
    /// Moves all work to a new engine with the same plugins and classes; class and item objects are new then.
    void migrate();
    /// The class of that name.
    msfrs_class &classOf(const std::string &name) const;
    /// Checks the laws; every call above does so.
    void audit(const char *after);

    SimClock clock;
    Host host;
    uint32_t itemFlags = 0; ///< flags of arriving items
    std::vector<int64_t> processing; ///< est[1..] of arriving items, if exact; empty: the same as est[0]
    Engine &engine() { return *engine_; }
    msfrs_time wakeAt() const { return wakeAt_; }
    const std::vector<Tracked *> &queued() const { return queued_; }
    const std::vector<Tracked *> &served() const { return served_; }
    int64_t bytesOf(const msfrs_class &c) const; ///< cost of a class's completed items
    uint64_t victims() const { return victims_; }
    uint64_t lost() const { return lost_; } ///< dropped when picked

private:
    void enter(std::vector<Tracked *> &, Tracked &);
    void leave(Tracked &);
    void forget(Tracked &);
    void estimate(const Tracked &, int64_t *est) const;

    std::unique_ptr<Engine> makeEngine();

    Variant sched_;
    Setup setup_;
    std::unique_ptr<Engine> engine_;
    std::map<Tracked *, std::unique_ptr<Tracked>> all_;
    std::vector<Tracked *> queued_, served_;
    std::map<std::string, int64_t> bytes_;
    uint64_t offered_ = 0, dropped_ = 0, done_ = 0, victims_ = 0, lost_ = 0;
    msfrs_time wakeAt_ = 0;
    uint64_t number_ = 0;
};

/// For packets, whose costs are known before they are served.
inline Driver::Setup Exact()
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    return setup;
}

} // namespace msfrs::test
