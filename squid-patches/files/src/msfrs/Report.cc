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
#include "msfrs/lib/report/faults.h"
#include "msfrs/lib/report/gateway_report.h"
#include "msfrs/Report.h"
#include "msfrs/Snapshot.h"
#include "msfrs/Uplink.h"
#include "Store.h"
#include "tools.h"

#include <cstring>
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

constexpr auto MetricsName = "msfrs-metrics"; ///< of the report that is not YAML

/// One report of all workers, which the coordinator joins. A worker's report may be larger than a message between
/// them: it is passed through a file in memory.
class ReportAction: public Mgr::Action
{
public:
    static Pointer Create(const Mgr::CommandPointer &cmd) { return new ReportAction(cmd); }
    explicit ReportAction(const Mgr::CommandPointer &aCmd): Action(aCmd) {}

    /* Mgr::Action API */
    void add(const Action &) override;
    void pack(Ipc::TypedMsgHdr &) const override;
    void unpack(const Ipc::TypedMsgHdr &) override;
    const char *contentType() const override;

protected:
    /* Mgr::Action API */
    void collect() override;
    void dump(StoreEntry *) override;

private:
    bool asMetrics() const { return strcmp(name(), MetricsName) == 0; }
    static void CloseSent(void *);

    report::GatewayReport report_;
};

void
ReportAction::collect()
{
    if (IamWorkerProcess())
        report_ = ReportOf(TheGateway());
}

void
ReportAction::add(const Action &other)
{
    report_.add(dynamic_cast<const ReportAction &>(other).report_);
}

/// \param data the descriptor of a file that has been sent
void
ReportAction::CloseSent(void * const data)
{
    close(static_cast<int>(reinterpret_cast<intptr_t>(data)));
}

void
ReportAction::pack(Ipc::TypedMsgHdr &message) const
{
    const auto fd = IamWorkerProcess() ? TextToFile(report_.written()) : -1;
    if (fd < 0)
        return;
    message.putFd(fd);
    // The message is sent later; after ten seconds the coordinator no longer waits for it.
    eventAdd("msfrs::ReportAction::CloseSent", &ReportAction::CloseSent,
             reinterpret_cast<void *>(static_cast<intptr_t>(fd)), 10, 0, false);
}

void
ReportAction::unpack(const Ipc::TypedMsgHdr &message)
{
    if (message.hasFd())
        report_ = report::GatewayReport::Read(TextFromFile(message.getFd()));
}

void
ReportAction::dump(StoreEntry * const entry)
{
    Must(entry);
    PackableStream os(*entry);
    if (asMetrics())
        report_.printMetrics(os, report::FaultsOf());
    else
        report_.printYaml(os);
}

const char *
ReportAction::contentType() const
{
    return asMetrics() ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : Action::contentType();
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
    const auto gateway = TheGateway();
    if (!gateway)
        return report::PrintUsers(os, {});
    for (const auto &uplink: gateway->uplinks()) {
        if (gateway->several())
            os << "---\nlink: " << uplink->config().interface << '\n';
        const auto scheduler = uplink->scheduler();
        report::PrintUsers(os, scheduler ? scheduler->topUsers(SIZE_MAX) : std::vector<UserReport>());
    }
}

/// Not a report, but implemented as one, like offline_toggle: the window starts again.
static void
ResetWindow(StoreEntry * const entry)
{
    PackableStream os(*entry);
    const auto gateway = TheGateway();
    auto any = false;
    for (size_t n = 0; gateway && n < gateway->uplinks().size(); ++n) {
        auto &uplink = *gateway->uplinks()[n];
        const auto reset = uplink.attempt("resetWindow", [](auto &scheduler, const auto now) {
            scheduler.resetWindow(now);
        });
        if (!reset || !uplink.scheduler())
            continue;
        const auto window = uplink.scheduler()->window();
        const auto again = window.queueTarget < 0 ? "W+ is " + report::Fixed(window.limit, 2)
                           : "the queue target is " + report::Fixed(1000*window.queueTarget, 1) + " ms";
        debugs(97, DBG_IMPORTANT, "msfrs: " << again << " again, by Cache Manager request");
        os << again << " again\n";
        any = true;
    }
    if (!any)
        os << "nothing is scheduled\n";
}

void
RegisterReports()
{
    Mgr::RegisterAction("msfrs", "Request Scheduler (MSF-RS): classes, window, top users; YAML",
                        &ReportAction::Create, 0, 1);
    Mgr::RegisterAction("msfrs-users", "Request Scheduler (MSF-RS): all users; YAML",
                        &UsersAction::Create, 0, 1);
    Mgr::RegisterAction(MetricsName, "Request Scheduler (MSF-RS): OpenMetrics, for Prometheus",
                        &ReportAction::Create, 0, 1);
    Mgr::RegisterAction("msfrs-reset-window", "Request Scheduler (MSF-RS): reset the window",
                        &ResetWindow, 1, 1); // changes something: only with a password
}

} // namespace msfrs::squid
