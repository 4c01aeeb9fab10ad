/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "base/PackableStream.h"
#include "base/TextException.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "event.h"
#include "globals.h"
#include "ipc/RequestId.h"
#include "ipc/TypedMsgHdr.h"
#include "ipc/UdsOp.h"
#include "mgr/Action.h"
#include "mgr/Command.h"
#include "mgr/Filler.h"
#include "mgr/Registration.h"
#include "mgr/Request.h"
#include "msfrs/FoundRate.h"
#include "msfrs/Gateway.h"
#include "msfrs/Report.h"
#include "msfrs/Snapshot.h"
#include "msfrs/Yaml.h"
#include "Store.h"
#include "tools.h"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <unistd.h>

namespace msfrs::squid
{

/// All users of this process. With several workers, each writes its own.
class UsersAction: public Mgr::Action
{
public:
    static Pointer Create(const Mgr::CommandPointer &cmd) { return new UsersAction(cmd); }
    explicit UsersAction(const Mgr::CommandPointer &aCmd): Action(aCmd) {}

    /* Mgr::Action API */
    void respond(const Mgr::Request &) override;
    bool aggregatable() const override { return false; }

protected:
    /* Mgr::Action API */
    void dump(StoreEntry *) override;
};

/// One report of all workers, which the coordinator joins. A worker's snapshot may be larger than a message between
/// them: it is passed through a file in memory.
class SnapshotAction: public Mgr::Action
{
public:
    explicit SnapshotAction(const Mgr::CommandPointer &aCmd): Action(aCmd) {}

    /* Mgr::Action API */
    void add(const Action &) override;
    void pack(Ipc::TypedMsgHdr &) const override;
    void unpack(const Ipc::TypedMsgHdr &) override;

protected:
    /* Mgr::Action API */
    void collect() override;

    Snapshot snapshot_;

private:
    static void CloseSent(void *);
};

class YamlAction: public SnapshotAction
{
public:
    static Pointer Create(const Mgr::CommandPointer &cmd) { return new YamlAction(cmd); }
    using SnapshotAction::SnapshotAction;

protected:
    /* Mgr::Action API */
    void dump(StoreEntry *) override;
};

class MetricsAction: public SnapshotAction
{
public:
    static Pointer Create(const Mgr::CommandPointer &cmd) { return new MetricsAction(cmd); }
    using SnapshotAction::SnapshotAction;

    /* Mgr::Action API */
    const char *contentType() const override;

protected:
    /* Mgr::Action API */
    void dump(StoreEntry *) override;
};

void
SnapshotAction::collect()
{
    if (IamWorkerProcess())
        snapshot_ = SnapshotOf(TheGateway());
}

void
SnapshotAction::add(const Action &other)
{
    snapshot_.add(dynamic_cast<const SnapshotAction &>(other).snapshot_);
}

/// \param data the descriptor of a file that has been sent
void
SnapshotAction::CloseSent(void * const data)
{
    close(static_cast<int>(reinterpret_cast<intptr_t>(data)));
}

void
SnapshotAction::pack(Ipc::TypedMsgHdr &message) const
{
    const auto fd = IamWorkerProcess() ? TextToFile(snapshot_.written()) : -1;
    if (fd < 0)
        return;
    message.putFd(fd);
    // The message is sent later; after ten seconds the coordinator no longer waits for it.
    eventAdd("msfrs::SnapshotAction::CloseSent", &SnapshotAction::CloseSent,
             reinterpret_cast<void *>(static_cast<intptr_t>(fd)), 10, 0, false);
}

void
SnapshotAction::unpack(const Ipc::TypedMsgHdr &message)
{
    if (message.hasFd())
        snapshot_ = Snapshot::Read(TextFromFile(message.getFd()));
}

void
UsersAction::respond(const Mgr::Request &request)
{
    // as Mgr::FunAction does: this process writes its part to the HTTP client itself
    Ipc::ImportFdIntoComm(request.conn, SOCK_STREAM, IPPROTO_TCP, Ipc::fdnHttpSocket);
    Must(Comm::IsConnOpen(request.conn));
    Must(request.requestId != 0);
    AsyncJob::Start(new Mgr::Filler(this, request.conn, request.requestId));
}

void
UsersAction::dump(StoreEntry * const entry)
{
    Must(entry);
    PackableStream os(*entry);
    if (UsingSmp())
        os << "---\nkid: " << KidIdentifier << '\n'; // one document of a stream
    PrintUsers(os, TheGateway());
}

void
YamlAction::dump(StoreEntry * const entry)
{
    Must(entry);
    PackableStream os(*entry);
    PrintReport(os, snapshot_);
}

void
MetricsAction::dump(StoreEntry * const entry)
{
    Must(entry);
    PackableStream os(*entry);
    PrintMetrics(os, snapshot_);
}

const char *
MetricsAction::contentType() const
{
    return "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

/// Not a report, but implemented as one, like offline_toggle: W+ begins anew.
static void
ResetWindow(StoreEntry * const entry)
{
    PackableStream os(*entry);
    const auto gateway = TheGateway();
    const auto reset = gateway && gateway->attempt("resetWindow", [](auto &scheduler, const auto now) {
        scheduler.resetWindow(now);
    });
    if (!reset || !gateway->scheduler()) {
        os << "nothing is scheduled\n";
        return;
    }
    const auto window = gateway->scheduler()->window();
    const auto again = window.queueTarget < 0 ? "W+ is " + Fixed(window.limit, 2)
                       : "the queue target is " + Fixed(1000*window.queueTarget, 1) + " ms";
    debugs(97, DBG_IMPORTANT, "msfrs: " << again << " again, by Cache Manager request");
    os << again << " again\n";
}

void
RegisterReports()
{
    Mgr::RegisterAction("msfrs", "Request Scheduler (MSF-RS): classes, window, top users; YAML",
                        &YamlAction::Create, 0, 1);
    Mgr::RegisterAction("msfrs-users", "Request Scheduler (MSF-RS): all users; YAML",
                        &UsersAction::Create, 0, 1);
    Mgr::RegisterAction("msfrs-metrics", "Request Scheduler (MSF-RS): OpenMetrics, for Prometheus",
                        &MetricsAction::Create, 0, 1);
    Mgr::RegisterAction("msfrs-reset-window", "Request Scheduler (MSF-RS): let the window begin anew",
                        &ResetWindow, 1, 1); // changes something: only with a password
}

std::string
Fixed(const double number, const int decimals)
{
    char buf[400]; // enough for any double
    snprintf(buf, sizeof(buf), "%.*f", decimals, number);
    return buf;
}

namespace
{

constexpr size_t ShownUsers = 10; ///< entries of a report; msfrs-users has all

std::string
Plugin(const PluginChoice &choice)
{
    const auto settings = PrintSettings(choice.settings);
    return Quoted(choice.name + (settings.empty() ? "" : " " + settings));
}

void
PrintLink(std::ostream &os, const Snapshot &snapshot)
{
    const auto &config = snapshot.config;
    const auto &window = snapshot.window;
    os << "link:\n"
       "  rate: " << Fixed(config.rate, 0) << "\n"
       "  interface: " << (config.interface.empty() ? "null" : Quoted(config.interface)) << "\n"
       "  # whether utilisation is the interface counter's; otherwise that of the bytes of responses\n"
       "  metered: " << (window.metered ? "true" : "false") << "\n"
       "  overhead: " << Fixed(config.overhead, 4) << "\n"
       "  packet_overhead: " << config.packetOverhead << "\n"
       "  rtt: " << Fixed(config.rtt*1e-9, 3) << '\n';
    if (window.capacity)
        PrintFoundRate(os, *window.capacity, snapshot.now);
}

void
PrintWindow(std::ostream &os, const RequestConfig &config, const WindowReport &window, const double now)
{
    os << "window:\n"
       "  outstanding: " << Fixed(window.outstanding, 0) << " # W, responses in service\n"
       "  limit: " << Fixed(window.limit, 2) << " # W+, its limit\n"
       "  queue_target: " << (window.queueTarget < 0 ? "null" : Fixed(window.queueTarget, 4)) <<
       " # q*, the queue that bytes in flight may build at the provider; null: law=paper\n"
       "  queue: " << (window.queue < 0 ? "null" : Fixed(window.queue, 4)) <<
       " # at the provider, from RTT samples; null: too few recent ones\n"
       "  base: " << (window.base > 0 ? Fixed(window.base, 4) : "null") << " # mean base RTT to servers\n"
       "  utilisation: " << Fixed(window.utilisation, 4) << " # U of the last interval, share of the rate\n"
       "  used_while_waiting: " << Fixed(window.usedWhileFull, 4) << " # the same while requests waited\n"
       "  own: " << (window.own < 0 ? "null" : Fixed(window.own, 4)) << " # share of responses in it\n"
       "  law: " << (config.window.law == WindowLaw::Bytes ? "bytes" : "paper") << "\n"
       "  floor: " << Fixed(config.window.floor, 2) << "\n"
       "  target: " << Fixed(config.window.target, 4) << " # U+\n"
       "  interval: " << Fixed(config.window.interval*1e-9, 3) << "\n"
       "  growth: " << Fixed(config.window.growth, 2) << "\n"
       "  reserve: " << Fixed(config.window.reserve, 2) << "\n"
       "  patience: " << Fixed(static_cast<double>(config.patience) * 1e-9, 3) << "\n"
       "  # one entry per interval since the last configuration, latest last; full: share of time in which requests\n"
       "  # waited; own: as above\n"
       "  history:" << (window.history.empty() ? " []\n" : "\n");
    for (const auto &sample: window.history) {
        os << "    - {ago: " << Fixed(now - sample.at, 1) << ", outstanding: " << Fixed(sample.w, 0) <<
           ", limit: " << Fixed(sample.wplus, 2) << ", utilisation: " << Fixed(sample.u, 4) <<
           ", full: " << (sample.full ? "true" : "false") << ", own: " <<
           (sample.own < 0 ? "null" : Fixed(sample.own, 4)) << "}\n";
    }
}

/// the parties on the link
void
PrintParties(std::ostream &os, const std::vector<PartySnapshot> &parties)
{
    if (parties.empty())
        return;
    const auto leads = std::find_if(parties.begin(), parties.end(), [](const PartySnapshot &p) { return p.leads; });
    os << "# parties on the link: workers and others. leads: its window applies to all. demand: sum of the weights of\n"
       "# active users. share: of the link, by demand. configured: like the leader\n"
       "parties:\n";
    for (const auto &p: parties) {
        const auto alike = p.live && leads != parties.end() && p.config == leads->config;
        os << "  - {slot: " << p.slot << ", kind: " << p.kind << ", live: " << (p.live ? "true" : "false") <<
           ", leads: " << (p.leads ? "true" : "false") << ", pid: " << p.pid << ", outstanding: " << p.places <<
           ", waiting: " << p.waiting << ", demand: " << Fixed(p.demand, 3) << ", share: " << Fixed(p.share, 4) <<
           ", configured: " << (alike ? "true" : "false") << "}\n";
    }
}

void
PrintExcess(std::ostream &os, const Snapshot &snapshot)
{
    const auto &counts = snapshot.excess;
    os << "excess: # reported to msfrs_excess\n"
       "  socket: " << (snapshot.excessSocket.empty() ? "null" : Quoted(snapshot.excessSocket)) << "\n"
       "  lines: " << counts.lines << "\n"
       "  bytes: " << counts.bytes << " # charged to classes\n"
       "  no_class_bytes: " << counts.noClass << "\n"
       "  refused_lines: " << counts.refused << '\n';
}

void
PrintQuota(std::ostream &os, const QuotaReport &quota)
{
    os << "    quota:";
    if (quota.bytes == 0) {
        os << " null\n";
        return;
    }
    os << " {bytes: " << quota.bytes << ", period: " << QuotaPeriodText(quota.period) << ", over: " <<
       Quoted(quota.over) << ", ends_in: " << quota.endsIn << ", users: " << quota.users << ", users_over: " <<
       quota.usersOver << ", passed: " << quota.passed << "}\n"
       "    quota_users:" << (quota.most.empty() ? " []\n" : "\n");
    for (const auto &user: quota.most)
        os << "      - {user: " << Quoted(user.name) << ", bytes: " << user.bytes << "}\n";
}

void
PrintClass(std::ostream &os, const ClassReport &c, const bool isDefault)
{
    os << "  - name: " << Quoted(c.name) << "\n"
       "    default: " << (isDefault ? "true" : "false") << "\n"
       "    weight: " << Fixed(c.weight, 3) << "\n"
       "    users: " << c.users << "\n"
       "    queued: " << c.queued << "\n"
       "    paused: " << c.paused << "\n"
       "    in_flight: " << c.inFlight << "\n"
       "    sending: " << c.inFlight - c.asked << "\n"
       "    asked: " << c.asked << "\n"
       "    silent: " << c.resting << "\n"
       "    requests: " << c.requests << "\n"
       "    exchanges: " << c.exchanges << "\n"
       "    bytes: " << c.bytes << "\n"
       "    excess: " << c.excess << "\n"
       "    quanta: " << c.quanta << "\n"
       "    service: " << Fixed(c.service, 0) << "\n"
       "    held_p50: " << Fixed(c.heldP50, 4) << "\n"
       "    held_p95: " << Fixed(c.heldP95, 4) << "\n"
       "    held_p99: " << Fixed(c.heldP99, 4) << "\n"
       "    unfinished: " << Fixed(c.unfinished, 0) << "\n"
       "    held_per_mb: " << (c.bytesLately > 0 ? Fixed(1e6*c.heldLately/c.bytesLately, 4) : "null") << "\n"
       "    refused: {per_user: " << c.refusedPerUser << ", total: " << c.refusedTotal <<
       ", admission: " << c.refusedAdmission << ", max_wait: " << c.expired << "}\n";
}

void
PrintHeld(std::ostream &os, const std::vector<HeldReport> &held)
{
    os << "# requests that wait for a turn now, longest wait first, at most " << Snapshot::MostHeld <<
       ". request: has had none yet.\n"
       "# exchange: a later one of a persistent connection. response: paused between two quanta.\n"
       "# id: %master_xaction of logformat\n"
       "held:" << (held.empty() ? " []\n" : "\n");
    for (const auto &h: held) {
        os << "  - {user: " << Quoted(h.user) << ", class: " << Quoted(h.className) << ", host: " << Quoted(h.host) <<
           ", waited: " << Fixed(h.waited, 3) << ", what: " << HeldText(h.what) << ", id: " << h.id << "}\n";
    }
}

void
PrintUserRows(std::ostream &os, const char * const key, const std::vector<UserReport> &users)
{
    os << "# by bytes since the user was first seen\n" <<
       key << ':' << (users.empty() ? " []\n" : "\n");
    for (const auto &u: users) {
        os << "  - {user: " << Quoted(u.name) << ", class: " << Quoted(u.className) << ", bytes: " << u.bytes <<
           ", queued: " << u.queued << ", in_flight: " << u.inFlight << "}\n";
    }
}

} // namespace

void
PrintReport(std::ostream &os, const Snapshot &snapshot)
{
    os << "# Request scheduler (MSF-RS). Rates in bit/s, times in seconds, sizes in bytes; counts since it started.\n"
       "scheduling: " << (snapshot.scheduling ? "true" : "false") << '\n';
    if (!snapshot.scheduling) {
        os << "holding: no, because " << (snapshot.failed ? "the scheduler failed and will start again; see cache.log"
                                          : "msfrs is off") << '\n';
        return;
    }

    const auto &config = snapshot.config;
    const auto &window = snapshot.window;
    os << "holding: " << (window.holding ? "yes" : "no") << ", because " << window.because << '\n';
    PrintLink(os, snapshot);
    PrintWindow(os, config, window, snapshot.now*1e-9);
    os << "# why a worker that should share the link schedules its part of the rate alone; null: none does\n"
       "alone: " << (snapshot.alone.empty() ? "null" : Quoted(snapshot.alone)) << '\n';
    PrintParties(os, snapshot.parties);
    PrintExcess(os, snapshot);
    os << "quantum: " << config.quantum << " # 0: none\n"
       "max_wait: " << Fixed(config.maxWait*1e-9, 3) << "\n"
       "max_per_user: " << config.maxPerUser << "\n"
       "max_queued: " << config.maxQueued << "\n"
       "arbiter: " << Plugin(config.arbiter) << "\n"
       "admission: " << Plugin(config.admission) << "\n"
       "# users: with a request queued or in service. in_flight: requests with a slot; their servers are sending, or\n"
       "# were asked and have not answered yet. silent: idle, open without a slot. exchanges: beyond the first of\n"
       "# each request, which counts as a request.\n"
       "# service: the service counter SC, bytes / (weight * users).\n"
       "# excess: bytes that no request caused, in addition to bytes.\n"
       "# held_p*: time that an exchange was held, before its first release and between its quanta, over the last 5\n"
       "# to 10 minutes. An exchange held now counts with its time so far, and each megabyte of a large response for\n"
       "# itself. held_per_mb: the sum of these times per million bytes delivered meanwhile; null: none were.\n"
       "# unfinished: bytes received, each times the seconds since its exchange began. Its growth in a second is the\n"
       "# mean number of bytes requested and not received.\n"
       "# quota: bytes of a user of the class in a period, of all its traffic; users: with any; users_over: those who\n"
       "# exceeded it and are in the class over now; passed: how often that happened. quota_users: those with most.\n"
       "classes:\n";
    size_t index = 0;
    for (const auto &c: snapshot.classes) {
        PrintClass(os, c, index == config.defaultClass);
        PrintQuota(os, index < snapshot.quotas.size() ? snapshot.quotas[index] : QuotaReport());
        ++index;
    }

    PrintHeld(os, snapshot.held);
    auto users = snapshot.users;
    users.resize(std::min(users.size(), ShownUsers));
    PrintUserRows(os, "top_users", users);
}

void
PrintUsers(std::ostream &os, const Gateway * const gateway)
{
    const auto scheduler = gateway ? gateway->scheduler() : nullptr;
    PrintUserRows(os, "users", scheduler ? scheduler->topUsers(SIZE_MAX) : std::vector<UserReport>());
}

} // namespace msfrs::squid
