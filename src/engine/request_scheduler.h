// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// MSF-RS for hosts that schedule requests: combines the engine, the window and the quanta.
///
/// States of a request:
///
///     hold() -> QUEUED -> granted -> SERVED -> (quantum used up, others wait) -> PAUSED -> granted -> SERVED ...
///                 ^                    |
///                 |                    +-----> (its server is silent) -> RESTING
///                 +------------------------------- again() -----------------+
///
/// With WindowLaw::Bytes a response is EARLY before it is PAUSED: it queues for its next turn while the rest of the
/// current one is in flight, and its owner reads on. If it is granted meanwhile, it is SERVED without a pause.
///
/// A persistent connection is one request with many *exchanges*. Each exchange waits for its turn as a fresh item.
/// While the server is silent the request is RESTING: it is idle, without a slot.
///
/// Invariants: a request holds a slot in the window exactly while it is SERVED or EARLY, and has an item in the engine
/// exactly while it is QUEUED, SERVED, EARLY or PAUSED. RequestOwner::granted() is called once for each transition to
/// SERVED, except from EARLY and where readMore() or again() returns true. To owners EARLY is SERVED. done() may be
/// called once, in any state, and frees everything. A request that was served once is never refused.
#pragma once

#include "ledger/ledger.h"
#include "plugin/loader.h"
#include "plugin/msfrs_plugin.h"
#include "window/capacity.h"
#include "window/meter.h"
#include "window/window_params.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

class Request; ///< one scheduled request; made by hold(), gone after done()

/// The path to a server, as seen by one connection.
struct PathSample {
    uint64_t server = 0;                  ///< key of the server's address
    msfrs_time rtt = 0;                   ///< ns, latest RTT; 0: unknown
    msfrs_time least = 0;                 ///< ns, minimum RTT; 0: unknown
    msfrs_time age = 0;                   ///< ns since data was received
    uint64_t packets = 0, outOfOrder = 0; ///< received, and received out of order
    bool counted = true;                  ///< whether the kernel counts these
};

/// Why a request was refused.
enum class Refusal { None, PerUser, Total, Admission };

/// The host's side of one request.
class RequestOwner {
public:
    virtual ~RequestOwner() = default;
    /// The request may be forwarded (first call), or its response may be read (later calls). May be called from inside
    /// any call to the scheduler except the owner's own readMore() and done(). Must not throw.
    virtual void granted() = 0;
    /// The request waited longer than max_wait and was removed from its queue: answer the client and call done(). Never
    /// called for a paused response or a later exchange: those are granted when they have waited too long.
    virtual void expired() = 0;
    /// The same if the request lost its place in the queue. \param why Admission: the AQM dropped it, as a victim or
    /// when its turn came; Total: the queue is full, and its user has most requests in it
    virtual void dropped(Refusal why) { static_cast<void>(why), expired(); }
    /// Whether the server has fallen silent, so that another request can have the slot. Called 50 times a second
    /// while SERVED. If it returns true, the request is RESTING. Must not call the scheduler; must not throw.
    virtual bool silent(msfrs_time now) { return static_cast<void>(now), false; }
    /// Samples the connection to the server. Called while SERVED: at most 50 times a second for all requests together,
    /// or 80 times where C is estimated. Must not call the scheduler; must not throw.
    virtual PathSample path(msfrs_time now) { return static_cast<void>(now), PathSample(); }
    /// For reports: whether the request was sent and the server has not begun to answer; called while SERVED.
    virtual bool asked() const { return false; }
    /// For reports: the host that the client asked for; empty: unknown.
    virtual std::string host() const { return {}; }
    /// For reports: the number of this request in the host's log; 0: none.
    virtual uint64_t id() const { return 0; }
};

struct ClassConfig {
    std::string name;
    double weight = 1.0; ///< w_i > 0
};

/// A plugin and its parameters as written in the configuration; checked when the scheduler is made.
struct PluginChoice {
    std::string name;                ///< "msf", or a path that contains '/'
    std::vector<Setting> settings;   ///< name=value pairs
    PluginPtr loaded = nullptr;      ///< already loaded by the host; null: the scheduler loads it
};

/// All parameters; no state.
struct RequestConfig {
    double rate = 0;                  ///< C in bit/s, > 0; where C is estimated, config() has the estimate
    CapacityParams bounds;            ///< of the estimate of C, 0 < min <= max; 0, 0: C is `rate`
    std::string interface;            ///< its receive counter measures U; empty: payload with overhead
    double overhead = 0.06;           ///< share added to payload bytes when there is no interface, 0..1
    uint32_t packetOverhead = 0;      ///< bytes of each packet that the interface does not count, 0..256
    msfrs_time rtt = 300'000'000;     ///< ns, > 0: RTT up to which a single response can fill the link
    WindowParams window;
    msfrs_time patience = 600'000'000; ///< ns, > 0: least time that a request keeps its slot unanswered
    int64_t quantum = 16384;          ///< bytes, 0: none (a response is served in one piece)
    std::vector<ClassConfig> classes; ///< at least one
    uint32_t defaultClass = 0;        ///< index into classes
    msfrs_time maxWait = 60'000'000'000; ///< ns, > 0: longest wait of a request
    uint32_t maxPerUser = 16384;      ///< queued requests of one user, >= 1; by default as many as of all
    /// Queued requests in all, >= 1: bounds memory and descriptors. When so many wait, the last one of the user with
    /// most of them for its weight is refused.
    uint32_t maxQueued = 16384;
    PluginChoice arbiter{"msf", {}};
    PluginChoice admission{"none", {}}; ///< "none" or an AQM
    std::string pluginDir;            ///< directory of plugins; empty: the installed one

    bool byBytes() const { return window.law == WindowLaw::Bytes && quantum > 0; }
};

/// What the host provides for the scheduler.
struct RequestHost {
    std::function<void(int level, const std::string &)> log; ///< level 0 important, 1 info, 2 debug
    std::function<uint64_t()> random;                        ///< 64 uniform random bits
    std::function<std::unique_ptr<InterfaceCounter>(const std::string &interface)> openCounter; ///< empty: the kernel's
    std::shared_ptr<Ledger> ledger = {}; ///< shared by all schedulers of the link; null: not shared
};

/// Counters of one class since the start or its first configuration.
struct ClassCounts {
    uint64_t requests = 0, bytes = 0, quanta = 0;
    uint64_t exchanges = 0;           ///< beyond the first of each request; not in `requests`
    uint64_t excess = 0;              ///< bytes that no request caused; not in `bytes`
    uint64_t refusedPerUser = 0, refusedTotal = 0, refusedAdmission = 0, expired = 0; ///< requests
    /// byte s: for each byte delivered, the time since its exchange began. By Little's law its growth per second is the
    /// mean number of bytes requested and not delivered; no response size needs to be known.
    double unfinished = 0;
};

/// Figures of one class for reports. Times in seconds.
struct ClassReport : ClassCounts {
    std::string name;
    double weight = 0;
    uint32_t users = 0, queued = 0, paused = 0, inFlight = 0;
    uint32_t asked = 0;               ///< part of inFlight: the server has not begun to answer
    uint32_t resting = 0;             ///< open and idle, without a slot: the server is silent
    double service = 0;               ///< SC_i, bytes per weight and user
    /// Time held over the last five to ten minutes: of an exchange, the wait before its first turn and all pauses
    /// between quanta, so far if it is in progress. Each megabyte of a larger exchange is a sample of its own.
    double heldP50 = 0, heldP95 = 0, heldP99 = 0;
    double heldLately = 0, bytesLately = 0; ///< their sum, and the bytes delivered meanwhile
    uint64_t heldCount = 0;           ///< exchanges and megabytes in all, including those in progress
    double heldSum = 0;               ///< total time held
};

struct UserReport {
    std::string name, className;
    uint64_t bytes = 0;               ///< since the user was first seen, or seen again after it was forgotten
    uint32_t queued = 0, inFlight = 0;
};

/// A request that waits for a turn.
struct HeldReport {
    enum class What { Request, Exchange, Response }; ///< first exchange; later one of a connection; paused response
    std::string user, className, host;
    double waited = 0;                ///< s, so far
    What what = What::Request;
    uint64_t id = 0;                  ///< RequestOwner::id()
};
const char *HeldText(HeldReport::What);

/// The window for reports.
struct WindowReport {
    bool holding = false;             ///< whether requests wait
    std::string because;              ///< one sentence: why requests wait, or why none does
    double outstanding = 0, limit = 0, utilisation = 0; ///< W, W+, U of the last interval
    uint32_t here = 0;                ///< this scheduler's part of W; the rest is that of other parties
    bool follows = false;             ///< another party computes W+
    double own = -1;                  ///< share of C that responses had in it; negative: unknown
    double queue = -1, base = 0;      ///< s: bottleneck queueing delay (< 0: unknown); mean base RTT (0: unknown)
    double queueTarget = -1;          ///< q*, s; negative: responses are not admitted by bytes in flight
    bool metered = false;             ///< whether U comes from the interface counter
    double usedWhileFull = 0;         ///< `utilisation` while a request waited; over all the time if none did
    double full = 0, carriedWhileFull = 0; ///< s in which a request waited, and bytes carried then, in all
    std::optional<CapacityReport> capacity; ///< the estimate of C, where C is estimated
    /// One interval: its end, s of the host's clock; W; W+; U; share of time full; share of C of responses, as `own`.
    struct Sample { double at, w, wplus, u, full, own; };
    std::vector<Sample> history;      ///< since the last reconfiguration; latest last, at most 120
};

class RequestScheduler {
public:
    /// \throws ConfigError with a sentence that names the value and what is allowed
    RequestScheduler(const RequestConfig &, const RequestHost &, msfrs_time now);
    ~RequestScheduler();

    /// Adopts a new configuration without losing a request. A request of a class that no longer exists, by its name,
    /// moves to the default class. The plugins may change too (engine/migrate.h).
    /// \throws ConfigError: nothing has changed; PluginError, as from every call: the scheduler must be freed
    void reconfigure(const RequestConfig &, msfrs_time now);

    /// Queues a request. May call owner.granted() before it returns.
    /// \param cls index into RequestConfig::classes
    /// \param expected bytes of its response, if known before the server states them; negative: unknown
    /// \param since when it began to wait, if it has waited at the scheduler of another link; 0: now
    /// \returns the request, or nullptr and the reason in `why`
    Request *hold(RequestOwner &owner, uint32_t cls, std::string_view user, msfrs_time now, Refusal &why,
                  int64_t expected = -1, msfrs_time since = 0);

    /// Admits a request that must not wait (fail open, pinned): in service at once, and charged like any other.
    Request *adopt(RequestOwner &owner, uint32_t cls, std::string_view user, msfrs_time now);

    /// Sets the remaining bytes of a response; charge() counts them down. Call it before readMore() and again(),
    /// whenever something new is known. Once a server states more than before, the size of this request is unknown from
    /// then on, so that understating a size gains nothing.
    /// \param remaining bytes, including those in the kernel's buffer; negative: unknown
    void expect(Request &, int64_t remaining, msfrs_time now);

    /// Sets a lower bound of the remaining bytes, for example the rest of a chunk. It counts only if it exceeds what
    /// the request has had, so that it never moves a request forward.
    void expectAtLeast(Request &, int64_t remaining, msfrs_time now);

    /// `bytes` >= 0 of the response arrived from the link.
    void charge(Request &, int64_t bytes, msfrs_time now);

    /// Whether the owner may continue reading. False: the quantum is over and another item goes first; granted()
    /// follows. Call only while SERVED.
    /// \param complete the response may have ended, so that another turn might be wasted: one more read per quantum is
    ///        granted beyond it
    bool readMore(Request &, msfrs_time now, bool complete = false);

    /// The client of a SERVED or PAUSED request has asked for more, such as the next HTTP/2 request in a tunnel whose
    /// server still answers others. The next bytes may be its answer, so from its next turn on the request waits like a
    /// first quantum. Class and user stay charged for what they had. May call granted().
    void askedMore(Request &, msfrs_time now);

    /// Begins a new exchange of a RESTING request.
    /// \returns whether it may continue at once; if not, granted() follows
    bool again(Request &, msfrs_time now);

    /// Whether the user of a RESTING or QUEUED request owes a quantum or more; the server may then send nothing
    /// unasked. Bytes that arrive without a turn while others wait are owed: the user's next turns pay for them, so
    /// that the other users of the class do not.
    bool owes(const Request &) const;

    /// Whether a request waits for a turn.
    bool contended() const;

    /// The service has ended, for any reason. Frees the Request.
    void done(Request *, msfrs_time now);

    /// Moves a request in any state to the user of the same name of another class. What it had so far stays charged to
    /// the old class. It keeps its slot, the rest of its quantum and the time that it has waited. Among its user's
    /// items with as much service it queues last. May call granted().
    /// \param cls index into RequestConfig::classes; if the request is in that class, nothing happens
    void reclass(Request &, uint32_t cls, msfrs_time now);

    /// Charges a user for packets that no request caused (paper, section 6 (2)). A user without requests is charged
    /// when its next request comes. Beyond MostUsers users, the bytes of a new user are charged to a user of the class
    /// named OtherUsers.
    /// \param cls index into RequestConfig::classes \param bytes >= 0, headers included
    void chargeExcess(uint32_t cls, std::string_view user, int64_t bytes, msfrs_time now);
    /// Beyond these chargeExcess() adds no user: packets to addresses that do not exist must not fill the memory.
    static constexpr size_t MostUsers = 65536;
    static constexpr const char *OtherUsers = "(others)";

    /// The same for a receiver without a class: the bytes count only in the utilisation (section 6 (3)).
    void countExcess(int64_t bytes);

    /// The first bytes of a quantum were read: calls the owner's path(), unless an owner was sampled in the last 20 ms,
    /// or C is estimated (all in service are then sampled anyway). Call only while SERVED.
    void lookAtPath(Request &, msfrs_time now);

    /// Sets q* to q0, or W+ to 1, as if the scheduler had just started.
    void resetWindow(msfrs_time now);

    /// Does what is due with time, such as updating the window and expiring requests.
    /// \returns when to call it next, at most one window interval from `now`
    msfrs_time tick(msfrs_time now);

    /// When tick() is due earlier, because the arbiter asks for it or servers may have fallen silent; any call may
    /// change it. 0: it is not.
    msfrs_time wakeAt() const;

    /// The receive window of a connection to a server, in bytes: the limit of a response's bytes in flight; 0 without
    /// quanta. This is the largest, for a response alone on the link: C rtt.
    int receiveBuffer() const;

    /// The same for a new response whose class and user are not known yet: C (R + q0) divided by the number in service.
    /// At least the smaller of three segments and a quantum; at most receiveBuffer().
    /// \param base base RTT R of the server, ns; 0: unknown, rtt then replaces R + q0
    int receiveBufferShare(msfrs_time base = 0) const;

    /// The same for a response in service: its part of its user's share of C (R + q*), by weight among the users who
    /// wait or receive. So a user's only response gets the whole share, and a response alone on the link fills it.
    int receiveBuffer(Request &, msfrs_time base = 0);

    /// Base RTT of a server, the least that connections have seen, ns; 0: unknown.
    /// \param server key of its address
    msfrs_time baseRoundTrip(uint64_t server) const;

    std::vector<ClassReport> classes(msfrs_time now) const; ///< by index into RequestConfig::classes
    std::vector<UserReport> topUsers(size_t most) const; ///< at most `most`, in descending order of bytes
    /// At most `most` of the requests that wait now, longest wait first.
    std::vector<HeldReport> held(size_t most, msfrs_time now) const;
    WindowReport window() const;
    uint32_t classIndex(std::string_view name) const; ///< UINT32_MAX if there is none
    const RequestConfig &config() const;

    /// Figures of one request for access.log.
    struct Trace {
        std::string className;
        msfrs_time firstWait = 0;  ///< ns between hold() and the first grant; -1: not granted
        msfrs_time totalWait = 0;  ///< ns, firstWait plus all pauses and the waits of later exchanges
        msfrs_time exchangeWait = 0; ///< ns that later exchanges waited for their first grants
        uint32_t exchanges = 1;    ///< begun, the first one included
        uint32_t quanta = 0;       ///< begun
        uint32_t w = 0;            ///< W after the first grant
        double wplus = 0;          ///< W+ at the first grant
        int64_t bytes = 0;         ///< charged so far
    };
    Trace trace(const Request &, msfrs_time now) const;

private:
    friend std::string AuditLaws(const RequestScheduler &); ///< test/support/audit.h
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace msfrs
