// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The state behind RequestScheduler, shared by its sources, request_*.cc. Not installed.
#pragma once

#include "engine/engine.h"
#include "engine/request_config.h"
#include "engine/request_scheduler.h"
#include "engine/wait_histogram.h"
#include "window/arrivals.h"
#include "window/flight_credit.h"
#include "window/link_use.h"
#include "window/paper_window.h"
#include "window/queue_estimate.h"
#include "window/queue_target.h"
#include "window/service_lag.h"
#include "window/window_floor.h"

#include <algorithm>
#include <array>
#include <deque>
#include <list>

namespace msfrs {

/// ns between checks for silent servers in service, and between RTT samples where C is configured: short beside any
/// patience. Half costs twice as many of both and changes nothing else (docs/lab/constants.md).
constexpr msfrs_time LookEvery = 20'000'000;
/// Bytes of an exchange after which its time held is a sample: about a page. A download is held most of its time by
/// design; as one sample of an hour it would hide how long pages are held. With half as many bytes a page is two
/// samples of half its time each; with twice as many the samples of downloads are twice as long as those of pages.
constexpr int64_t HeldPiece = 1'000'000;

inline double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }

struct ClassStats : ClassCounts {
    explicit ClassStats(std::string n): name(std::move(n)) {}

    std::string name;
    uint32_t early = 0, paused = 0, resting = 0;
    WaitHistogram held; ///< of finished exchanges, and of each HeldPiece of others
};

class Request {
public:
    enum class State : uint8_t { Queued, Served, Early, Paused, Resting, Refused };

    Request(RequestOwner &o, const msfrs_time now): owner(&o), waitingSince(now), askedAt(now) {}

    RequestOwner *owner;
    msfrs_item *item = nullptr;       ///< null only when Resting or Refused
    std::shared_ptr<ClassStats> stats;
    std::list<Request *>::iterator place; ///< in the list of its state
    msfrs_time waitingSince;          ///< start of the current wait
    msfrs_time firstWait = -1, totalWait = 0;
    State state = State::Queued;
    bool first = true;                ///< Served for the first time in this exchange
    bool askedMore = false;           ///< Served or Early: its next wait is again one for a first turn
    bool beyond = false;              ///< Served; its quantum is used up, and one more read was granted
    uint32_t quanta = 0, w = 0;
    int64_t quantumLeft = 0, bytes = 0;
    int window = 0;                   ///< receive window, bytes
    int64_t remaining = MSFRS_UNKNOWN; ///< of the response; the item has it as of its latest queueing or expect()
    int64_t stated = INT64_MAX;       ///< least sum of `bytes` and stated remainder; -1: never believed again
    FlightCredit::Booking booking;    ///< what it is expected to bring in this turn; none unless Served or Early
    Arrivals arrivals;                ///< what bounds that: bytes and requests so far
    msfrs_time base = 0;              ///< ns: base RTT of its server; 0: not known

    // Last, since a release does not read these: fewer cache lines per release make a long queue cheaper.
    double wplus = 0;
    msfrs_time askedAt;               ///< when its exchange began
    uint32_t exchanges = 1;
    msfrs_time exchangeWait = 0;
    msfrs_time heldBefore = 0;        ///< part of held() that is already in ClassStats::held
    int64_t bytesBefore = 0;          ///< part of `bytes` that is already counted there
    msfrs_class *cls = nullptr;       ///< valid while Resting
    std::string user;                 ///< likewise: its flow may be forgotten meanwhile
    msfrs_time roundTrip = 0, toldAt = 0; ///< ns: smoothed RTT last reported by the kernel, and when; 0: none
    uint64_t packets = 0, outOfOrder = 0; ///< received by its connection, as last sampled

    /// ns held since hold(), including the current wait
    msfrs_time held(const msfrs_time now) const
    {
        const bool waits = state == State::Queued || state == State::Paused;
        return totalWait + (waits ? std::max<msfrs_time>(now - waitingSince, 0) : 0);
    }
    /// Adds what is not yet in the figures.
    void tellHeld(WaitHistogram &figures, const msfrs_time now) const
    {
        figures.add(held(now) - heldBefore, bytes - bytesBefore, now);
    }
    /// An exchange or a HeldPiece of it is over, or moves to another class. Not while Resting: there is none.
    void countHeld(const msfrs_time now)
    {
        tellHeld(stats->held, now);
        heldBefore = held(now);
        bytesBefore = bytes;
    }
};

struct RequestScheduler::Impl {
    Impl(const RequestConfig &c, const RequestHost &h, const msfrs_time now):
        config(Prepared(c)), law(makeLaw()), host(h), ledger(h.ledger ? h.ledger : std::make_shared<Ledger>()),
        meter(makeMeter(c)), engine(makeEngine(c)), windowParams(WindowOf(config)),
        use(windowParams.interval, now, meter->total()), paper(now, meter->total()), queueTarget(windowParams.queue)
    {
        look(now);
        findBetween(c.bounds, now);
        if (capacity)
            rebase(now);
        slots = slotsOf(c, *engine);
        tellClasses();
        followWindow(now);
    }

    /// The condition for a release, and what depends on it: request_law_bytes.cc is the product's, request_law_paper.cc
    /// the paper's. Impl holds what they measure, so a reconfiguration can change the law under load.
    class Law {
    public:
        explicit Law(Impl &s): self(s) {}
        virtual ~Law() = default;

        virtual bool open() const = 0;         ///< any request may be released
        virtual bool within() const = 0;       ///< no response has to give its slot back
        virtual bool openForFresh() const = 0; ///< a request without service may be released
        virtual double limit() const = 0;      ///< W+
        virtual double elsewhere() const = 0;  ///< W of the other parties
        /// Part of the window that is taken here, and all of it, in the unit in which other parties learn of them.
        virtual uint32_t part() const = 0;
        virtual double whole() const = 0;
        virtual void follow(const SharedWindow *) = 0; ///< another party computes the window; null: it is computed here
        virtual std::string text() const = 0;  ///< for the operator: how full the window is

        /// Bytes of a response in service have arrived.
        virtual void arrived(const Request &, int64_t) {}
        virtual bool opensByBytes() const { return false; } ///< whether those may have made room for a request
        virtual double lag(NamedFlow &) const { return 0; } ///< bytes that a user's windows should make up for
        /// Whether a response queues for its next turn while it is served. \param complete it may have ended
        virtual bool queuesEarly(const Request &, bool) const { return false; }
        virtual void adapt(const QueueSeen &, msfrs_time) {} ///< an interval of the window has ended
        virtual double queueTarget() const { return -1; }    ///< q*, s; negative: there is none

    protected:
        Impl &self;
    };
    class BytesLaw;
    class PaperLaw;
    std::unique_ptr<Law> makeLaw() { return config.byBytes() ? makeBytesLaw() : makePaperLaw(); }
    std::unique_ptr<Law> makeBytesLaw();
    std::unique_ptr<Law> makePaperLaw();

    struct Slot {
        msfrs_class *cls;
        std::shared_ptr<ClassStats> stats;
        double owed = 0; ///< bytes that the class had elsewhere and was not charged for
    };

    /// A plugin that runs, and cannot be loaded again, stays.
    std::unique_ptr<Engine> makeEngine(const RequestConfig &);
    std::unique_ptr<Meter> makeMeter(const RequestConfig &) const;
    static bool SamePlugins(const RequestConfig &, const RequestConfig &);
    std::vector<Slot> slotsOf(const RequestConfig &, Engine &) const;
    static void assign(Request &, const Slot &); ///< to a class
    void rebuild(const RequestConfig &, std::unique_ptr<Engine>, msfrs_time now);

    std::list<Request *> &listOf(const Request &r)
    {
        switch (r.state) {
        case Request::State::Queued: return waiting;
        case Request::State::Early: return early;
        case Request::State::Paused: return paused;
        case Request::State::Served: return served;
        case Request::State::Resting: return resting;
        case Request::State::Refused: break;
        }
        return refused;
    }
    void enter(Request &r, const Request::State state)
    {
        r.state = state;
        auto &list = listOf(r);
        r.place = list.insert(list.end(), &r);
    }
    void change(Request &r, const Request::State state, const msfrs_time now)
    {
        auto &from = listOf(r);
        count(r, -1);
        r.state = state;
        count(r, 1);
        auto &to = listOf(r);
        to.splice(to.end(), from, r.place); // r.place stays valid
        book(r, now);
    }
    /// counts a request among those of its state, or takes it out (by = -1)
    static void count(const Request &r, const int by)
    {
        if (r.state == Request::State::Early)
            r.stats->early += static_cast<uint32_t>(by);
        else if (r.state == Request::State::Paused)
            r.stats->paused += static_cast<uint32_t>(by);
        else if (r.state == Request::State::Resting)
            r.stats->resting += static_cast<uint32_t>(by);
    }
    void leave(Request &r)
    {
        count(r, -1);
        credit.book(r.booking, 0, 1);
        listOf(r).erase(r.place);
    }

    using Estimate = std::array<int64_t, MSFRS_RESOURCES>;
    /// What a request is charged when it is granted, corrected when its turn is over. Its bytes arrive an RTT later:
    /// without this charge a user that is behind would be granted again and again until then.
    Estimate estimate(bool fresh, int64_t remaining) const;
    /// A stated size, or unknown if it is implausible.
    static int64_t Believable(int64_t bytes);
    /// Books what a response is expected to bring in this turn.
    void book(Request &, msfrs_time now);
    int64_t expected(const Request &, int64_t most, msfrs_time now) const;
    int64_t inFlight(const Request &) const; ///< most bytes that its window lets be in flight, as booked
    /// Its server has a request to answer.
    void expectAnswer(Request &, msfrs_time now);
    double roundTrip(msfrs_time base) const;
    /// Rate at which responses here may arrive, as a share of C.
    double takenHere() const { return credit.rate() / (config.rate / 8); }
    double takenElsewhere() const;
    double taken() const { return takenHere() + takenElsewhere(); } ///< of all parties
    void noteWindow(Request &) const;
    size_t inService() const { return served.size() + early.size(); } ///< W, here
    double outstanding() const { return static_cast<double>(inService()) + law->elsewhere(); } ///< W, of all parties
    /// Share of C for responses: what other traffic leaves, but at least the floor unless that traffic is known to be
    /// unresponsive.
    double leftByOthers() const;
    /// Closes the interval, if time has passed since it began.
    /// \param total carried()
    /// \param responses share of C that they had in it; negative: unknown
    bool endInterval(msfrs_time now, double total, double responses);
    /// From here on the meter counts from a new origin.
    void rebase(msfrs_time now);
    void adoptWindow(const WindowParams &);
    /// Queued requests that have no turn.
    uint64_t waiters() const { return engine->totals().queued.items - early.size(); }
    /// A turn is over; called before anything is changed.
    void learn(const Request &);
    void grant(Request &, msfrs_time now);
    /// \param why None: it has waited too long
    void refuse(Request &, msfrs_time now, Refusal why);
    /// The queue is full, and a request of this user arrives: the user with most requests waiting for its weight, the
    /// arrival counted, loses its last one.
    /// \returns whether there is room now; if not, the arrival is that last one
    bool makeRoom(const NamedFlow &, msfrs_time now);
    void lose(Request &, msfrs_time now);
    void pump(msfrs_time now);
    void expire(msfrs_time now);
    /// Takes the slots of requests whose servers are silent.
    void restSilent(msfrs_time now);
    void end(Request &, msfrs_time now);
    void queueAgain(Request &, Request::State, msfrs_time now);
    bool pause(Request &, msfrs_time now);
    void renew(Request &, msfrs_time now);
    void queueFresh(Request &, msfrs_flow &, msfrs_time now);
    bool goOn(Request &, msfrs_time now);
    NamedFlow &flowOf(const Request &) const; ///< of a request that is not Refused
    /// Bytes arrived without a turn.
    void owe(NamedFlow &, int64_t bytes, msfrs_time now);
    /// A turn begins. \returns the part of its quantum that pays what its user owes
    int64_t pay(const Request &, msfrs_time now);
    double activeWeights() const;
    uint32_t activeUsers() const; ///< with a request waiting or in service
    struct Receivers {
        double weights = 0;     ///< of users
        uint32_t responses = 0; ///< of one user, in service, that have begun to arrive
    };
    Receivers receivers(const NamedFlow &);
    void lookAtReceivers();
    double userShare(const Request &, msfrs_time base);
    int windowOf(msfrs_time base) const;
    int mostBuffer() const;
    double ownShare(msfrs_time now);
    void findBetween(const CapacityParams &, msfrs_time now);
    double carried();
    double rated() const;
    QueueSeen pathHere(msfrs_time now) const;
    QueueSeen pathSeen(msfrs_time now) const;
    QueueSeen withOthers(const QueueSeen &here) const;
    /// \returns whether its connection knew an RTT
    bool lookAtPath(Request &, msfrs_time now);
    /// Samples connections and adapts C, when that is due.
    void findRate(msfrs_time now);
    /// Adopts the estimate of C, made here or by another party.
    void adoptRate();
    std::string because() const;
    /// Reads what the other parties have and want.
    void look(msfrs_time now);
    /// Publishes what this party has and wants.
    void tell(msfrs_time now);
    void tellClasses();
    void chargeClasses(msfrs_time now);
    void touch(msfrs_flow &f)
    {
        auto &flow = static_cast<NamedFlow &>(f);
        if (host.ledger && flow.party == 0) // without other parties users are not followed
            follow(flow);
    }
    void follow(NamedFlow &);
    void exchangeUsers(msfrs_time now);
    void leaveUsers();
    uint32_t waitingElsewhere(const NamedFlow &) const; ///< requests of the user that wait at other parties
    double weight(const msfrs_class &) const; ///< as configured
    void touchAll();
    /// Ledger::settle() and what goes with it, when it is due.
    void settle(msfrs_time now);
    void followWindow(msfrs_time now);
    /// Whether another party waits for a slot.
    bool wanted() const { return others->waiting > 0; }
    /// Warns once if a standing queue shows that the configured rate is too high, or that bytes are not counted.
    void doubtRate(const QueueSeen &, msfrs_time now);

    RequestConfig config;
    std::unique_ptr<Law> law; ///< of this configuration
    RequestHost host;
    std::shared_ptr<Ledger> ledger;
    const OtherParties *others = nullptr;         ///< the ledger's; never null
    struct Followed {
        NamedFlow *flow;
        Ledger::User user;
    };
    /// Users with work, and those charged lately. NamedFlow::party is an index here, plus 1. A flow leaves long before
    /// the engine may free it.
    std::vector<Followed> followed;
    std::vector<double> chargedUsers; ///< bytes, by msfrs_class::index: charged to them by the last exchangeUsers()
    bool blocked = false;                         ///< requests wait for a slot, as of the last pump()
    int64_t chargedBytes = 0;                     ///< to requests, and for excess of users who have some
    msfrs_time nextSettle = 0;
    PluginPtr arbiter, admission;                 ///< those of `config`, loaded
    std::unique_ptr<Meter> meter;
    std::unique_ptr<Engine> engine;
    WindowParams windowParams;
    LinkUse use;
    PaperWindow paper;
    WindowFloor floor;
    FlightCredit credit;
    QueueTarget queueTarget;
    ServiceLag lag;
    struct {
        uint64_t round = 0;   ///< number of the latest look
        double weights = 0;   ///< Receivers::weights, as of it
        size_t stillGood = 0; ///< number of receivers() calls until the next
    } looked;
    msfrs_time usualBase = 0;                     ///< ns: base RTT where a server's own is unknown
    QueueEstimate path;
    std::optional<Capacity> capacity;             ///< only where C is estimated
    struct {
        double total = 0, own = 0;                ///< see carried(); own: of responses
        double totalBefore = 0, ownBefore = 0;    ///< of the meter, when it was last counted
    } sums;
    uint64_t packets = 0, outOfOrder = 0;         ///< received by connections, as sampled
    size_t looks = 0;                             ///< rounds of sampling connections
    msfrs_time nextLook = 0;                      ///< of a connection, where C is known
    bool uncounted = false;                       ///< whether it was logged that these cannot be seen
    double firstQuantum = 0;                      ///< mean bytes of a first quantum; 0: unknown
    double ownBefore = 0, own = -1;               ///< sums.own at the end of the last interval; see ownShare()
    msfrs_time ownAt = 0;                         ///< when that was
    std::vector<Slot> slots;                      ///< by index into config.classes
    std::list<Request *> waiting, paused, served, early, resting, refused; ///< each in order of entry
    std::deque<WindowReport::Sample> history;
    double configuredAt = -1;                     ///< s, as Sample::at: earlier measurements are not reported
    msfrs_time nextForget = 0;
    msfrs_time nextSilence = 0;                   ///< next check by restSilent(), while any request is served
    msfrs_time wakeAt = 0;                        ///< when the arbiter wants to be asked again; 0: unset
    Request *asking = nullptr;                    ///< the request whose readMore() or again() pumps
    bool answered = false;                        ///< whether it was granted
    Request *arriving = nullptr;                  ///< the request whose hold() pumps; null again once it was dropped
    bool pumping = false;
    bool doubted = false;                         ///< whether doubtRate() has warned since the configuration was read
    msfrs_time believedAt = 0;                    ///< when the rate was last in no doubt
};

} // namespace msfrs
