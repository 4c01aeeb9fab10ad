/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "globals.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/Gateway.h"
#include "msfrs/lib/ledger/hung_workers.h"
#include "msfrs/lib/ledger/mapping.h"
#include "msfrs/lib/ledger/report.h"
#include "msfrs/lib/ledger/shared.h"
#include "msfrs/lib/report/gateway_report.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"
#include "tools.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <sys/mman.h>

namespace msfrs::squid
{

namespace
{

ledger::Mapping *Made = nullptr; ///< by the master
ledger::Mapping *Opened = nullptr; ///< by a worker
ledger::Segment *ThisLedger = nullptr; ///< in Opened
ledger::HungWorkers Others; ///< among the workers of ThisLedger
std::string WhyAlone; ///< empty: this worker shares the link, or should not

/// The name that msfrs-share and msfrs-edge are configured with. It contains the service name, so that several Squids
/// do not collide. Not Ipc::Mem::Segment's: from Squid 7 on that has a hash in it, which nobody could configure.
std::string
Name()
{
    return "/" + std::string(service_name.rawContent(), service_name.length()) + "-msfrs_ledger.shm";
}

int
Workers()
{
    return InDaemonMode() ? Config.workers : 1;
}

/// whether the memory is needed
bool
Wanted()
{
    const auto links = Config.msfrs.links;
    return Workers() > 1 || (links && links->front()->options.has(Table::Link::Shared));
}

/// \param why in one clause, with the remedy
void
ScheduleAlone(const std::string &why)
{
    WhyAlone = why;
    debugs(97, DBG_CRITICAL, "ERROR: msfrs: each worker schedules alone with its part of the rate, " << why);
}

/// \returns the process that has started another; 0: there is none
pid_t
ParentOf(const pid_t pid)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const auto name = stat.rfind(')'); // a name may have anything in it; then come the state and the parent
    return name + 4 < stat.size() ? atoi(stat.c_str() + name + 4) : 0;
}

const char *
KindText(const ledger::Kind kind)
{
    switch (kind) {
    case ledger::Kind::Worker:
        return "worker";
    case ledger::Kind::Edge:
        return "edge";
    case ledger::Kind::Gateway:
        return "gateway";
    case ledger::Kind::Free:
        break;
    }
    return "free";
}

report::PartySnapshot
SnapshotOf(const ledger::PartyReport &party)
{
    report::PartySnapshot snapshot;
    snapshot.slot = party.slot;
    snapshot.kind = KindText(party.now.kind);
    snapshot.live = true;
    snapshot.leads = party.leads;
    snapshot.pid = party.figures.pid;
    snapshot.config = party.figures.config;
    snapshot.places = party.now.places;
    snapshot.waiting = party.now.waiting;
    snapshot.demand = party.now.demand;
    snapshot.share = party.share;
    return snapshot;
}

} // namespace

void
MakeWorkerLedger()
{
    if (!Wanted())
        return;
    const auto name = Name();
    ledger::Mapping::Remove(name); // left by a Squid that was killed
    try {
        Made = new ledger::Mapping(ledger::Mapping::Create(name, 0660)); // for our group, too: the other parties
    } catch (const ledger::MappingError &error) {
        // Scheduling alone is worse than sharing the link, but better than no service.
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: the workers' shared memory cannot be created: " <<
               error.what() << "; until Squid "
               "is started again, each worker schedules alone with its part of the rate");
    }
}

void
OpenWorkerLedger()
{
    if (!Wanted() || !IamWorkerProcess())
        return;
    if (Workers() > static_cast<int>(ledger::Slots)) {
        ScheduleAlone("since at most " + std::to_string(ledger::Slots) + " of " + std::to_string(Workers()) +
                      " workers can share the link");
        return;
    }
    try {
        Opened = new ledger::Mapping(ledger::Mapping::Open(Name()));
        ThisLedger = &Opened->segment();
    } catch (const ledger::MappingError &error) {
        ScheduleAlone(std::string("since what they share cannot be used: ") + error.what() +
                      "; start Squid again, its master included");
        return;
    }
    if (Config.shmLocking && mlock(ThisLedger, sizeof(*ThisLedger)) != 0) {
        const auto savedErrno = errno;
        debugs(97, DBG_IMPORTANT, "ERROR: msfrs: shared_memory_locking: " << Name() << " cannot be locked: " <<
               xstrerr(savedErrno));
    }
}

void
CloseWorkerLedger()
{
    ThisLedger = nullptr;
    delete Opened;
    Opened = nullptr;
    delete Made; // which also removes its name
    Made = nullptr;
}

bool
SharesLink()
{
    return ThisLedger != nullptr;
}

const std::string &
WhyLinkIsNotShared()
{
    return WhyAlone;
}

void
EndHungWorkers(const msfrs_time now)
{
    if (!ThisLedger)
        return;
    for (const auto pid: Others.look(*ThisLedger, now)) {
        if (pid <= 0 || pid == getpid() || ParentOf(pid) != getppid())
            continue; // it has ended, and is no worker of this Squid any more
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: worker process " << pid << " has not run for " <<
               ledger::HungWorkers::Looks << " s, and is ended, with its connections; Squid starts another");
        kill(pid, SIGKILL);
    }
}

ledger::Directory *
DirectoryOfLink()
{
    return ThisLedger ? &ThisLedger->directory : nullptr;
}

ledger::QuotaTable *
QuotasOfLink()
{
    return ThisLedger ? &ThisLedger->quotas : nullptr;
}

uint64_t
NumberOf(const RequestConfig &config)
{
    report::Snapshot snapshot;
    snapshot.scheduling = true;
    snapshot.config = config;
    snapshot.window.capacity = CapacityReport();
    snapshot.window.capacity->params = config.bounds;
    for (const auto &c: config.classes) {
        snapshot.classes.emplace_back();
        snapshot.classes.back().name = c.name;
        snapshot.classes.back().weight = c.weight;
    }
    return std::hash<std::string>()(report::GatewayReport(snapshot).written());
}

std::shared_ptr<SharedLedger>
JoinWorkerLedger(const RequestConfig &config, const msfrs_time now)
{
    if (!ThisLedger)
        return nullptr;
    const uint32_t number = KidIdentifier > 0 ? KidIdentifier - 1 : 0; // workers are the first kids
    const auto slot = ledger::OwnSlot::OfWorker(*ThisLedger, number, now);
    if (!slot) {
        WhyAlone = "since " + std::to_string(ledger::Slots) + " parties share the link already";
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: this worker schedules alone, " << WhyAlone);
        return nullptr;
    }
    WhyAlone.clear();
    PartyParams params;
    params.slot = *slot;
    params.config = NumberOf(config);
    return std::make_shared<SharedLedger>(*ThisLedger, params, &Gateway::Log, now);
}

std::vector<report::PartySnapshot>
PartiesOfLink(const msfrs_time now)
{
    std::vector<report::PartySnapshot> parties;
    if (!ThisLedger)
        return parties;
    for (int number = 0; number < Workers(); ++number) {
        report::PartySnapshot worker;
        worker.slot = number;
        worker.kind = KindText(ledger::Kind::Worker);
        parties.push_back(worker);
    }
    for (const auto &party: ledger::Parties(*ThisLedger, now)) {
        if (party.slot < parties.size())
            parties[party.slot] = SnapshotOf(party);
        else
            parties.push_back(SnapshotOf(party));
    }
    return parties;
}

} // namespace msfrs::squid
