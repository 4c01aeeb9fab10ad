// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// MSF-RS for hosts that schedule requests: the engine, the window and the quanta put together.
///
/// States of a request:
///
///     hold() -> QUEUED -> granted -> SERVED -> (quantum used up, others wait) -> PAUSED -> granted -> SERVED ...
///                 ^                    |
///                 |                    +-----> (its server is silent) -> RESTING
///                 +------------------------------- again() -----------------+
///
/// A connection that is kept open is one request with many *exchanges*: each has a wait of its own, as a fresh item.
///
/// Invariants: a request holds a place in the window exactly while it is SERVED, and has an item in the engine exactly
/// while it is QUEUED, SERVED or PAUSED; RequestOwner::granted() is called once for every way into SERVED except those
/// that readMore() and again() answer directly; done() may come in any state, once, and frees everything. Who has been
/// served once is never refused.
#ifndef MSFRS_ENGINE_REQUEST_SCHEDULER_H
#define MSFRS_ENGINE_REQUEST_SCHEDULER_H

#include "plugin/loader.h"
#include "plugin/msfrs_plugin.h"
#include "window/capacity.h"
#include "window/meter.h"
#include "window/rate_controller.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

class Request; ///< one scheduled request; made by hold(), gone after done()

/// What a connection to a server sees of the path.
struct PathSample {
    uint64_t server = 0;                  ///< a key of its address
    msfrs_time rtt = 0;                   ///< ns, as of late; 0: nothing has come lately
    msfrs_time least = 0;                 ///< ns, at best; 0: not known
    uint64_t packets = 0, outOfOrder = 0; ///< received, and of these before others sent earlier
};

/// The host's side of one request.
class RequestOwner {
public:
    virtual ~RequestOwner() = default;
    /// The request may be forwarded (first call) or read on (later calls). May be called from inside any
    /// call to the scheduler except the owner's own readMore() and done(); must not throw.
    virtual void granted() = 0;
    /// The request waited longer than max_wait and was taken out of its queue; answer the client and call done().
    /// Never called for a paused response or a later exchange: those are granted when they have waited too long.
    virtual void expired() = 0;
    /// The same for a request that the admission control dropped after all: for another's sake, or as its turn came.
    virtual void dropped() { expired(); }
    /// Whether the server has fallen silent, so that the place is better had by another; asked some 40 times a second
    /// while SERVED. After true the request is RESTING. Must not call the scheduler; must not throw.
    virtual bool silent(msfrs_time now) { return static_cast<void>(now), false; }
    /// Where C is to be found: what the connection to its server sees; asked while SERVED, of all requests together 80
    /// times a second at most. Must not call the scheduler; must not throw.
    virtual PathSample path(msfrs_time now) { return static_cast<void>(now), PathSample(); }
    /// For reports: whether the server was asked and has not begun to answer; asked while SERVED.
    virtual bool asked() const { return false; }
    /// For reports: the host that the client asked for; empty: not known.
    virtual std::string host() const { return {}; }
};

struct ClassConfig {
    std::string name;
    double weight = 1.0; ///< w_i > 0
};

/// A plugin and its parameters as written by the user; checked when the scheduler is made.
struct PluginChoice {
    std::string name;                ///< "msf", or a path that contains '/'
    std::vector<Setting> settings;   ///< name=value pairs
};

/// All parameters; no state.
struct RequestConfig {
    double rate = 0;                  ///< C in bit/s, > 0; where it is found, config() has what is believed
    CapacityParams bounds;            ///< between which C is found, 0 < min <= max; 0, 0: it is `rate`
    std::string interface;            ///< whose receive counter measures U; empty: payload with overhead
    double overhead = 0.06;           ///< share added to payload bytes when there is no interface, 0..1
    uint32_t packetOverhead = 0;      ///< bytes of each packet that the interface's counter leaves out, 0..256
    msfrs_time rtt = 300'000'000;     ///< ns, > 0: up to this round trip one response alone can fill the link
    WindowParams window;
    msfrs_time patience = 600'000'000; ///< ns, > 0: how long a server that begins no answer holds its place at least
    int64_t quantum = 16384;          ///< bytes, 0: none (a response is served in one piece)
    std::vector<ClassConfig> classes; ///< at least one
    uint32_t defaultClass = 0;        ///< index into classes
    msfrs_time maxWait = 60'000'000'000; ///< ns, > 0
    uint32_t maxPerUser = 256;        ///< queued requests of one user, >= 1
    uint32_t maxQueued = 65536;       ///< queued requests in all, >= 1: bounds memory
    PluginChoice arbiter{"msf", {}};
    PluginChoice admission{"none", {}}; ///< "none" or an AQM
    std::string pluginDir;            ///< where plugins are; empty: the installed place
};

/// Why hold() refused.
enum class Refusal { None, PerUser, Total, Admission };
const char *RefusalText(Refusal);

/// What the host lends the scheduler.
struct RequestHost {
    std::function<void(int level, const std::string &)> log; ///< level 0 important, 1 info, 2 debug
    std::function<uint64_t()> random;
    std::function<std::unique_ptr<InterfaceCounter>(const std::string &interface)> openCounter; ///< empty: the kernel's
};

/// Figures of one class for reports. Times in seconds.
struct ClassReport {
    std::string name;
    double weight = 0;
    uint32_t users = 0, queued = 0, paused = 0, inFlight = 0;
    uint32_t asked = 0;               ///< of inFlight: their servers have not begun to answer
    uint32_t resting = 0;             ///< open, without a place: their servers are silent
    uint64_t exchanges = 0;           ///< beyond the first of each request; not in `requests`
    uint64_t requests = 0, bytes = 0, quanta = 0, refusedPerUser = 0, refusedTotal = 0, refusedAdmission = 0,
             expired = 0;
    uint64_t excess = 0;              ///< bytes that no request caused; not in `bytes`
    double service = 0;               ///< SC_i
    double waitP50 = 0, waitP95 = 0, waitP99 = 0; ///< of the last five to ten minutes; first grants of exchanges only
    uint64_t waitCount = 0;           ///< how many waits there have been in all
    double waitSum = 0;
};

struct UserReport {
    std::string name, className;
    uint64_t bytes = 0;               ///< since the user was first seen (and not forgotten since)
    uint32_t queued = 0, inFlight = 0;
};

/// Somebody who waits for a turn.
struct HeldReport {
    enum class What { Request, Exchange, Response }; ///< a first one, a later one of a connection, a paused response
    std::string user, className, host;
    double waited = 0;                ///< s, so far
    What what = What::Request;
};
const char *HeldText(HeldReport::What);

struct WindowReport {
    bool holding = false;             ///< whether anybody waits
    std::string because;              ///< one sentence: why, or why nobody does
    double outstanding = 0, limit = 0, utilisation = 0; ///< W, W+, U of the last interval
    double own = -1;                  ///< what responses had of C in it, a share; negative: not known
    WindowChange change = WindowChange::None; ///< why W+ was changed last
    double changedAt = 0;             ///< s of the host's clock: when; counts only if it was
    double queue = -1, base = 0;      ///< s: what the queue at the provider adds to round trips (negative: not known), and
                                      ///< their mean without it
    double budget = 1;                ///< phi: receive windows in service add up to so many times C R
    bool metered = false;             ///< whether U comes from the interface counter
    std::optional<CapacityReport> capacity; ///< what is believed of C, where it is found
    struct Sample { double at, w, wplus, u, full; }; ///< s of the host's clock; W; W+; U; share of time full
    std::vector<Sample> history;      ///< latest last, at most 120
};

class RequestScheduler {
public:
    /// \throws ConfigError with a sentence naming the value and what is allowed
    RequestScheduler(const RequestConfig &, const RequestHost &, msfrs_time now);
    ~RequestScheduler();

    /// Takes a new configuration over without losing a request: classes are matched by name, and a request
    /// of a class that is gone moves to the default class. The arbiter and admission plugins may change too.
    /// \throws ConfigError and then nothing has changed
    void reconfigure(const RequestConfig &, msfrs_time now);

    /// Queues a request of `user` in class `cls`. May call owner.granted() before it returns.
    /// \param expected bytes of its response if that is known from somebody else than its server; negative: not known
    /// \returns the request, or nullptr and the reason
    Request *hold(RequestOwner &owner, uint32_t cls, std::string_view user, msfrs_time now, Refusal &why,
                  int64_t expected = -1);

    /// Adopts a request that must not wait (fail open, pinned): in service at once, charged as any other.
    Request *adopt(RequestOwner &owner, uint32_t cls, std::string_view user, msfrs_time now);

    /// What is still to come of a response, in bytes, the kernel's included; negative: not known. What a server says
    /// is taken as it is until it says more than before: then nothing is known of this request for good, so that the
    /// order falls back to what it has had, and who says too little gains nothing. charge() counts it down. To be told
    /// before readMore() and again(), as often as anything new is known.
    void expect(Request &, int64_t remaining, msfrs_time now);

    /// So much is still to come at least, as of a chunk, and nobody knows how much more: counts where it is more than
    /// what the request has had, so that it puts nobody forward.
    void expectAtLeast(Request &, int64_t remaining, msfrs_time now);

    /// `bytes` >= 0 of the response arrived from the link.
    void charge(Request &, int64_t bytes, msfrs_time now);

    /// Whether the owner may read on. False: the quantum is over and somebody else goes first; granted()
    /// will be called. Only asked while SERVED.
    bool readMore(Request &, msfrs_time now);

    /// `bytes` >= 0 of the response have crossed the link already, while it was paused: they do not use up the
    /// quantum that has just begun. Only called while SERVED.
    void allowMore(Request &, int64_t bytes);

    /// A new exchange of a request that is RESTING. \returns whether it may go on at once; else granted() will be called.
    bool again(Request &, msfrs_time now);

    /// Whether anybody waits for service.
    bool contended() const;

    /// The service ended, however it ended. The Request is gone.
    void done(Request *, msfrs_time now);

    /// The owner object changed (a tunnel took over from a forwarder).
    void changeOwner(Request &, RequestOwner &);

    /// `bytes` >= 0 of packets, headers included, that no request caused came for a user of a class (paper,
    /// section 6 (2)). Somebody who has nothing here now finds it charged when the next request comes. While
    /// there are as many as MostUsers, another one's bytes are those of a user of the class called OtherUsers.
    void chargeExcess(uint32_t cls, std::string_view user, int64_t bytes, msfrs_time now);
    static constexpr size_t MostUsers = 65536;      ///< beyond whom chargeExcess() makes no new ones
    static constexpr const char *OtherUsers = "(others)";

    /// The same for a receiver of no class: the utilisation alone counts them (section 6 (3)).
    void countExcess(int64_t bytes);

    /// A connection to a server has seen a round trip of `rtt` ns > 0 lately, and of `least` > 0 at best.
    /// \param server a key of its address
    void seenRoundTrip(uint64_t server, msfrs_time rtt, msfrs_time least, msfrs_time now);

    /// W+ is W0+ again, as if the scheduler had just started.
    void resetWindow(msfrs_time now);

    /// Updates the window when an interval is over, expires what waited too long, releases what may go.
    /// \returns when it wants to be called next; at most one window interval away
    msfrs_time tick(msfrs_time now);

    /// When tick() is due although nothing has changed, which any call may have brought forward: the arbiter wants to
    /// be asked again, or servers may have fallen silent. 0: no such wish.
    msfrs_time wakeAt() const;

    /// Receive buffer that the connection to a server should be bounded to, in bytes: what one response may have on
    /// its way; 0 while quanta are off. This is the most, for one that has the link to itself: C rtt.
    int receiveBuffer() const;

    /// The same for one more among those in service: its share of phi C R (see FlightBudget), so that all together
    /// neither leave the link idle nor overflow a short queue before it. R is the round trip of its own server and what
    /// may stand at the provider. At least three segments or a quantum; at most receiveBuffer().
    /// \param base round trip to the server without a queue, ns; 0: not known, R is then rtt
    int receiveBufferShare(msfrs_time base = 0) const;

    /// The same for one in service: receiveBufferShare(), by its class's weight while some class has responses in service
    /// and none that waits; and C R once it has gone on for 64 KB without anybody waiting.
    int receiveBuffer(const Request &, msfrs_time base = 0) const;

    /// The round trip to a server without a queue as connections have seen it, ns; 0: not known.
    /// \param server a key of its address
    msfrs_time baseRoundTrip(uint64_t server) const;

    std::vector<ClassReport> classes() const;
    std::vector<UserReport> topUsers(size_t most) const;
    /// Who waits now, the longest first.
    std::vector<HeldReport> held(size_t most, msfrs_time now) const;
    WindowReport window() const;
    uint32_t classIndex(std::string_view name) const; ///< UINT32_MAX if there is none
    const RequestConfig &config() const;

    /// Figures of one request for access.log.
    struct Trace {
        std::string className;
        msfrs_time firstWait = 0;  ///< ns between hold() and the first grant; -1: not granted
        msfrs_time totalWait = 0;  ///< the same plus all pauses and the waits of later exchanges
        msfrs_time exchangeWait = 0; ///< ns that later exchanges waited for their first grants
        uint32_t exchanges = 1;    ///< begun, the first one included
        uint32_t quanta = 0;       ///< quanta begun
        uint32_t w = 0;            ///< W right after the first grant
        double wplus = 0;          ///< W+ then
        int64_t bytes = 0;         ///< charged so far
    };
    Trace trace(const Request &, msfrs_time now) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace msfrs

#endif
