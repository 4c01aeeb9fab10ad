// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Several request schedulers on one link and one ledger, in steps of a millisecond. The link is shared equally among
/// the responses in service of all parties. Parties may be killed, stopped and restarted under load.
#pragma once

#include "engine/request_scheduler.h"
#include "ledger/shared.h"
#include "support/fake_interface.h"
#include "support/host.h"
#include "support/plugins.h"

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace msfrs::test {

/// A user who keeps `inFlight` requests open, each at one of its parties.
struct SimUser {
    uint32_t cls = 0;
    std::string name;
    std::vector<uint32_t> parties;  ///< each request's party is drawn from these
    uint32_t inFlight = 4;
    bool asks = true;
    int64_t bytes = 0;              ///< received
    uint32_t open = 0;
};

class PartySim {
public:
    static constexpr msfrs_time Step = Ms, Latency = 50 * Ms;

    /// \param machines that run the parties, in turn: each has its own segment and interface
    explicit PartySim(const uint32_t parties, const double rate = 2e6, const uint64_t seed = 1,
                      const uint32_t machines = 1):
        host_(seed), sizes_(seed)
    {
        config.rate = rate;
        config.window.law = WindowLaw::Paper; // responses have no windows here; with bytes: test/sim/access_workers_test.cc
        for (uint32_t n = 0; n < machines; ++n) {
            machines_.emplace_back("down" + std::to_string(parties) + "-" + std::to_string(n));
            ledger::FormatSegment(machines_.back().segment.get());
        }
        config.pluginDir = PluginDir();
        config.arbiter = {"msf", {{"favour", "0"}}}; // parties share by what classes are charged for
        config.classes = {{"gold", 4}, {"silver", 2}, {"bronze", 1}};
        config.defaultClass = 2;
        parties_.resize(parties);
        for (uint32_t n = 0; n < parties; ++n)
            start(n);
    }
    virtual ~PartySim()
    {
        for (auto &p : parties_)
            end(p);
        for (auto &p : killed_)
            end(p);
    }

    /// The party starts, or restarts.
    void start(const uint32_t n)
    {
        auto &p = parties_[n];
        auto h = host_.requests();
        auto &machine = machineOf(n);
        config.interface = machine.down.name();
        const auto slot = n / static_cast<uint32_t>(machines_.size());
        p.ledger = std::make_shared<SharedLedger>(*machine.segment, PartyParams{ledger::Kind::Worker, slot, 0}, h.log,
                                                  now);
        h.ledger = p.ledger;
        p.scheduler = std::make_unique<RequestScheduler>(config, h, now);
        p.stopped = false;
        p.next = now;
    }
    /// As by SIGKILL: its slot keeps its state, and its clients ask another party.
    void kill(const uint32_t n)
    {
        killed_.push_back(std::move(parties_[n]));
        parties_[n] = Party();
        for (const auto &t : killed_.back().transfers)
            --t->user->open;
    }
    /// As by SIGSTOP and SIGCONT.
    void stop(const uint32_t n, const bool stopped) { parties_[n].stopped = stopped; }

    SimUser &user(const uint32_t cls, const std::string &name, std::vector<uint32_t> parties,
                  const uint32_t inFlight = 4)
    {
        return users.emplace_back(SimUser{cls, name, std::move(parties), inFlight});
    }
    /// `counts` users in each class, each at all parties.
    void everywhere(const std::vector<uint32_t> &counts)
    {
        std::vector<uint32_t> all;
        for (uint32_t n = 0; n < parties_.size(); ++n)
            all.push_back(n);
        for (uint32_t cls = 0; cls < counts.size(); ++cls) {
            for (uint32_t n = 0; n < counts[cls]; ++n)
                user(cls, std::to_string(cls) + "-" + std::to_string(n), all);
        }
    }

    void run(const msfrs_time time)
    {
        for (const auto until = now + time; now < until;)
            step();
    }
    /// Mean bytes of a user of each class in a time.
    std::vector<double> measure(const msfrs_time time)
    {
        std::vector<double> had(config.classes.size()), count(had.size());
        for (auto &u : users)
            u.bytes = 0;
        carried = 0;
        run(time);
        for (const auto &u : users) {
            had[u.cls] += static_cast<double>(u.bytes);
            ++count[u.cls];
        }
        for (size_t n = 0; n < had.size(); ++n)
            had[n] /= std::max(count[n], 1.0);
        utilisation = carried * 8 / config.rate / (static_cast<double>(time) * 1e-9);
        return had;
    }

    ledger::Segment &segmentOf(const uint32_t n) { return *machineOf(n).segment; }
    const RequestScheduler &scheduler(const uint32_t n) const { return *parties_[n].scheduler; }
    /// W of all live parties, by their own count.
    uint32_t places() const
    {
        uint32_t sum = 0;
        for (const auto &p : parties_)
            sum += p.scheduler ? p.scheduler->window().here : 0;
        return sum;
    }
    std::string logged() const { return host_.logged(0); }
    int reads() const { return machines_.front().down.reads; } ///< of the first machine's interface, by all parties

    RequestConfig config;
    PathSample sees;            ///< path sample of every connection
    std::function<void()> everyStep = [] {};
    std::list<SimUser> users;
    msfrs_time now = 1000 * Second;
    double carried = 0, utilisation = 0;
    uint32_t mostPlaces = 0;
    msfrs_time farLatency = Latency; ///< until the first byte of a response at the second party

private:
    struct Transfer final : RequestOwner {
        void granted() override
        {
            served = true;
            if (from < 0)
                from = sim->now + latency;
        }
        void expired() override { gone = true; }
        PathSample path(msfrs_time) override { return sim->sees; }

        const PartySim *sim = nullptr;
        msfrs_time latency = Latency;
        SimUser *user = nullptr;
        Request *request = nullptr;
        int64_t left = 0;
        double part = 0;            ///< fraction of a byte
        msfrs_time from = -1;       ///< time from which bytes may arrive
        bool served = false, gone = false;
    };
    struct Party {
        std::shared_ptr<SharedLedger> ledger;
        std::unique_ptr<RequestScheduler> scheduler;
        std::list<std::unique_ptr<Transfer>> transfers;
        msfrs_time next = 0;
        bool stopped = false;
    };

    static void end(Party &p)
    {
        p.scheduler.reset(); // frees everything, without calls to owners
        p.ledger.reset();
    }
    void ask(SimUser &u)
    {
        for (; u.asks && u.open < u.inFlight; ++u.open) {
            std::vector<uint32_t> live;
            for (const auto n : u.parties) {
                if (parties_[n].scheduler && !parties_[n].stopped)
                    live.push_back(n);
            }
            if (live.empty())
                return;
            auto &p = parties_[live[sizes_.below(live.size())]];
            auto made = std::make_unique<Transfer>();
            auto &t = *made;
            t.sim = this;
            t.latency = &p - parties_.data() == 1 ? farLatency : Latency;
            t.user = &u;
            t.left = sizes_.between(2000, 200'000);
            p.transfers.push_back(std::move(made));
            Refusal why;
            t.request = p.scheduler->hold(t, u.cls, u.name, now, why);
            t.gone = !t.request;
        }
    }
    void step()
    {
        now += Step;
        for (auto &u : users)
            ask(u);
        size_t count = 0;
        for (const auto &p : parties_) {
            for (const auto &t : p.transfers)
                count += !p.stopped && t->served && now >= t->from;
        }
        const double each = count ? config.rate / 8 * 1e-3 / static_cast<double>(count) : 0;
        for (auto &p : parties_) {
            if (!p.scheduler || p.stopped)
                continue;
            for (auto next = p.transfers.begin(); next != p.transfers.end();) {
                const auto place = next++;
                auto &t = **place;
                if (t.served && now >= t.from)
                    deliver(p, t, each);
                if (t.gone || t.left == 0) {
                    if (t.request)
                        p.scheduler->done(std::exchange(t.request, nullptr), now);
                    --t.user->open;
                    p.transfers.erase(place);
                }
            }
            const auto wake = p.scheduler->wakeAt();
            if (now >= p.next || (wake && now >= wake))
                p.next = p.scheduler->tick(now);
        }
        mostPlaces = std::max(mostPlaces, places());
        everyStep();
    }
    void deliver(Party &p, Transfer &t, const double each)
    {
        t.part += each;
        const auto bytes = std::min(static_cast<int64_t>(t.part), t.left);
        t.part -= static_cast<double>(bytes);
        t.left -= bytes;
        t.user->bytes += bytes;
        carried += static_cast<double>(bytes);
        *machineOf(static_cast<uint32_t>(&p - parties_.data())).down.bytes += static_cast<uint64_t>(bytes);
        p.scheduler->charge(*t.request, bytes, now);
        if (t.left > 0) {
            p.scheduler->expect(*t.request, t.left, now);
            t.served = p.scheduler->readMore(*t.request, now);
        }
    }

    Host host_;
    Random sizes_;
    struct Machine {
        explicit Machine(const std::string &name): down(name) {}
        FakeInterface down;
        std::unique_ptr<ledger::Segment> segment = std::make_unique<ledger::Segment>();
    };
    Machine &machineOf(const uint32_t n)
    {
        return *std::next(machines_.begin(), static_cast<int>(n % machines_.size()));
    }

    std::list<Machine> machines_;
    std::vector<Party> parties_;
    std::list<Party> killed_;
};

} // namespace msfrs::test
