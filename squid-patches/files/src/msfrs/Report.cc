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
#include "msfrs/Picture.h"
#include "msfrs/Report.h"
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

/// What goes on, as one report of all workers, which the coordinator joins. What a worker has to say may be larger than
/// what the messages between them can hold: it goes through a file in memory.
class PictureAction: public Mgr::Action
{
public:
    explicit PictureAction(const Mgr::CommandPointer &aCmd): Action(aCmd) {}

    /* Mgr::Action API */
    void add(const Action &) override;
    void pack(Ipc::TypedMsgHdr &) const override;
    void unpack(const Ipc::TypedMsgHdr &) override;

protected:
    /* Mgr::Action API */
    void collect() override;

    Picture picture_;

private:
    static void CloseSent(void *);
};

class YamlAction: public PictureAction
{
public:
    static Pointer Create(const Mgr::CommandPointer &cmd) { return new YamlAction(cmd); }
    using PictureAction::PictureAction;

protected:
    /* Mgr::Action API */
    void dump(StoreEntry *) override;
};

class MetricsAction: public PictureAction
{
public:
    static Pointer Create(const Mgr::CommandPointer &cmd) { return new MetricsAction(cmd); }
    using PictureAction::PictureAction;

    /* Mgr::Action API */
    const char *contentType() const override;

protected:
    /* Mgr::Action API */
    void dump(StoreEntry *) override;
};

void
PictureAction::collect()
{
    if (IamWorkerProcess())
        picture_ = PictureOf(TheGateway());
}

void
PictureAction::add(const Action &other)
{
    picture_.add(dynamic_cast<const PictureAction &>(other).picture_);
}

/// \param data a descriptor of a file that has been sent
void
PictureAction::CloseSent(void * const data)
{
    close(static_cast<int>(reinterpret_cast<intptr_t>(data)));
}

void
PictureAction::pack(Ipc::TypedMsgHdr &message) const
{
    const auto fd = IamWorkerProcess() ? TextToFile(picture_.written()) : -1;
    if (fd < 0)
        return;
    message.putFd(fd);
    // The message goes out later; after ten seconds the coordinator does not wait for it any more.
    eventAdd("msfrs::PictureAction::CloseSent", &PictureAction::CloseSent,
             reinterpret_cast<void *>(static_cast<intptr_t>(fd)), 10, 0, false);
}

void
PictureAction::unpack(const Ipc::TypedMsgHdr &message)
{
    if (message.hasFd())
        picture_ = Picture::Read(TextFromFile(message.getFd()));
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
    PrintReport(os, picture_);
}

void
MetricsAction::dump(StoreEntry * const entry)
{
    Must(entry);
    PackableStream os(*entry);
    PrintMetrics(os, picture_);
}

const char *
MetricsAction::contentType() const
{
    return "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

/// Not a report, but done as one, as offline_toggle is: W+ begins anew.
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
PrintLink(std::ostream &os, const Picture &picture)
{
    const auto &config = picture.config;
    const auto &window = picture.window;
    os << "link:\n"
       "  rate: " << Fixed(config.rate, 0) << "\n"
       "  interface: " << (config.interface.empty() ? "null" : Quoted(config.interface)) << "\n"
       "  # whether the interface's counter says how much of the link is used; the bytes of responses do otherwise\n"
       "  metered: " << (window.metered ? "true" : "false") << "\n"
       "  overhead: " << Fixed(config.overhead, 4) << "\n"
       "  packet_overhead: " << config.packetOverhead << "\n"
       "  rtt: " << Fixed(config.rtt*1e-9, 3) << '\n';
    if (window.capacity)
        PrintFoundRate(os, *window.capacity, picture.now);
}

void
PrintWindow(std::ostream &os, const RequestConfig &config, const WindowReport &window, const double now)
{
    os << "window:\n"
       "  outstanding: " << Fixed(window.outstanding, 0) << " # W, responses under way\n"
       "  limit: " << Fixed(window.limit, 2) << " # W+, how many there may be\n"
       "  queue_target: " << (window.queueTarget < 0 ? "null" : Fixed(window.queueTarget, 4)) <<
       " # q*, that bytes in flight may make at the provider; null: not by bytes\n"
       "  queue: " << (window.queue < 0 ? "null" : Fixed(window.queue, 4)) <<
       " # at the provider, as round trips to servers see it; null: too few seen lately\n"
       "  base: " << (window.base > 0 ? Fixed(window.base, 4) : "null") << " # their mean without that queue\n"
       "  utilisation: " << Fixed(window.utilisation, 4) << " # U of the last interval, share of the rate\n"
       "  used_while_waiting: " << Fixed(window.usedWhileFull, 4) << " # U of the time in it in which somebody waited\n"
       "  own: " << (window.own < 0 ? "null" : Fixed(window.own, 4)) << " # what responses had of that\n"
       "  law: " << (config.window.law == WindowLaw::Bytes ? "bytes" : "paper") << "\n"
       "  floor: " << Fixed(config.window.floor, 2) << "\n"
       "  target: " << Fixed(config.window.target, 4) << " # U+\n"
       "  interval: " << Fixed(config.window.interval*1e-9, 3) << "\n"
       "  growth: " << Fixed(config.window.growth, 2) << "\n"
       "  reserve: " << Fixed(config.window.reserve, 2) << "\n"
       "  patience: " << Fixed(static_cast<double>(config.patience) * 1e-9, 3) << "\n"
       "  # one entry per interval since the last configuration, the latest last; full: somebody had to wait for the\n"
       "  # window; own: as above\n"
       "  history:" << (window.history.empty() ? " []\n" : "\n");
    for (const auto &sample: window.history) {
        os << "    - {ago: " << Fixed(now - sample.at, 1) << ", outstanding: " << Fixed(sample.w, 0) <<
           ", limit: " << Fixed(sample.wplus, 2) << ", utilisation: " << Fixed(sample.u, 4) <<
           ", full: " << (sample.full ? "true" : "false") << ", own: " <<
           (sample.own < 0 ? "null" : Fixed(sample.own, 4)) << "}\n";
    }
}

/// who share the link
void
PrintParties(std::ostream &os, const std::vector<PartyPicture> &parties)
{
    if (parties.empty())
        return;
    const auto leads = std::find_if(parties.begin(), parties.end(), [](const PartyPicture &p) { return p.leads; });
    os << "# who share the link: workers, and what else spends it. leads: all go by its W+. demand: by weights of\n"
       "# active users. share: of the link, by that. configured: as the one that leads\n"
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
PrintExcess(std::ostream &os, const Picture &picture)
{
    const auto &counts = picture.excess;
    os << "excess: # what was reported to msfrs_excess\n"
       "  socket: " << (picture.excessSocket.empty() ? "null" : Quoted(picture.excessSocket)) << "\n"
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
    os << "# who waits for a turn now, the longest first, at most " << Picture::MostHeld <<
       ". request: has had none yet.\n"
       "# exchange: a later one of a connection that is kept. response: paused between two quanta.\n"
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
    os << "# by bytes since a user was first seen, and not forgotten since\n" <<
       key << ':' << (users.empty() ? " []\n" : "\n");
    for (const auto &u: users) {
        os << "  - {user: " << Quoted(u.name) << ", class: " << Quoted(u.className) << ", bytes: " << u.bytes <<
           ", queued: " << u.queued << ", in_flight: " << u.inFlight << "}\n";
    }
}

} // namespace

void
PrintReport(std::ostream &os, const Picture &picture)
{
    os << "# Request scheduler (MSF-RS). Rates in bit/s, times in seconds, sizes in bytes; counts since it started.\n"
       "scheduling: " << (picture.scheduling ? "true" : "false") << '\n';
    if (!picture.scheduling) {
        os << "holding: no, because " << (picture.failed ? "the scheduler failed and will start again; see cache.log"
                                          : "msfrs is off") << '\n';
        return;
    }

    const auto &config = picture.config;
    const auto &window = picture.window;
    os << "holding: " << (window.holding ? "yes" : "no") << ", because " << window.because << '\n';
    PrintLink(os, picture);
    PrintWindow(os, config, window, picture.now*1e-9);
    os << "# why a worker that should share the link schedules alone, with its part of the rate; null: none does\n"
       "alone: " << (picture.alone.empty() ? "null" : Quoted(picture.alone)) << '\n';
    PrintParties(os, picture.parties);
    PrintExcess(os, picture);
    os << "quantum: " << config.quantum << " # 0: none\n"
       "max_wait: " << Fixed(config.maxWait*1e-9, 3) << "\n"
       "max_per_user: " << config.maxPerUser << "\n"
       "max_queued: " << config.maxQueued << "\n"
       "arbiter: " << Plugin(config.arbiter) << "\n"
       "admission: " << Plugin(config.admission) << "\n"
       "# users: who have a request queued or in service. in_flight: who have a place, and are sending or were asked\n"
       "# and have not answered yet. silent: open without a place. exchanges: beyond the first of each request, which\n"
       "# is counted in requests.\n"
       "# service: the service counter, bytes by weight and user.\n"
       "# excess: bytes that no request caused, in addition to bytes.\n"
       "# held_p*: how long an exchange was held, before its first release and between its quanta, over the last five\n"
       "# to ten minutes. What is held now counts with the time so far, and each megabyte of a large response for\n"
       "# itself. held_per_mb: the sum of these times for a million bytes delivered meanwhile; null: there were none.\n"
       "# unfinished: bytes received, each by the seconds since its exchange began. What it grows by in a second is how\n"
       "# many bytes were asked for and not received, on average.\n"
       "# quota: what each user may have of the class in a period, from all traffic; users: who had any; users_over:\n"
       "# who had all, and go on in the class over; passed: how often that came about. quota_users: who had most.\n"
       "classes:\n";
    size_t index = 0;
    for (const auto &c: picture.classes) {
        PrintClass(os, c, index == config.defaultClass);
        PrintQuota(os, index < picture.quotas.size() ? picture.quotas[index] : QuotaReport());
        ++index;
    }

    PrintHeld(os, picture.held);
    auto users = picture.users;
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
