/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "globals.h"
#include "ipc/mem/Segment.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/Gateway.h"
#include "msfrs/Picture.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"
#include "tools.h"

#include "ledger/report.h"
#include "ledger/shared.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs::squid
{

namespace
{

/// Squid puts the name of the service before it, so that several Squids do not meet.
const char * const Label = "msfrs_ledger";

Ipc::Mem::Segment *Made = nullptr; ///< by the master
Ipc::Mem::Segment *Opened = nullptr; ///< by a worker
ledger::Segment *ThisLedger = nullptr; ///< in Opened

int
Workers()
{
    return InDaemonMode() ? Config.workers : 1;
}

/// whether the memory is needed
bool
Wanted()
{
    const auto link = Config.msfrs.link;
    return Workers() > 1 || (link && link->options.has(Table::Link::Shared));
}

/// Opens the memory by its name alone. Segment::open() would end the process where there is none.
/// \returns a descriptor, or -1
int
Look(Ipc::Mem::Segment &segment)
{
    return shm_open(segment.name().termedBuf(), O_RDWR | O_CLOEXEC, 0);
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

PartyPicture
PictureOf(const ledger::PartyReport &party)
{
    PartyPicture picture;
    picture.slot = party.slot;
    picture.kind = KindText(party.now.kind);
    picture.live = true;
    picture.leads = party.leads;
    picture.pid = party.figures.pid;
    picture.config = party.figures.config;
    picture.places = party.now.places;
    picture.waiting = party.now.waiting;
    picture.demand = party.now.demand;
    picture.share = party.share;
    return picture;
}

} // namespace

void
MakeWorkerLedger()
{
    if (!Wanted())
        return;
    Made = new Ipc::Mem::Segment(Label);
    Made->create(sizeof(ledger::Segment));
    ledger::FormatSegment(Made->mem());
    // for our group, too: others who spend the link
    const auto fd = Look(*Made);
    if (fd < 0 || fchmod(fd, 0660) != 0) {
        const auto savedErrno = errno;
        debugs(97, DBG_IMPORTANT, "WARNING: msfrs: only Squid's user can share the link: " << xstrerr(savedErrno));
    }
    if (fd >= 0)
        close(fd);
}

void
OpenWorkerLedger()
{
    if (!Wanted() || !IamWorkerProcess())
        return;
    if (Workers() > static_cast<int>(ledger::Slots)) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: each of " << Workers() << " workers schedules alone with its part "
               "of the rate: at most " << ledger::Slots << " can share the link");
        return;
    }
    Opened = new Ipc::Mem::Segment(Label);
    const auto fd = Look(*Opened);
    const auto savedErrno = errno;
    auto why = std::string("it cannot be opened: ") + xstrerr(savedErrno);
    struct stat found;
    if (fd >= 0 && fstat(fd, &found) == 0) {
        // likewise, it would end the process where there is nothing to map
        why = "it has " + std::to_string(found.st_size) + " bytes; wanted are " +
              std::to_string(sizeof(ledger::Segment));
        if (found.st_size >= static_cast<off_t>(sizeof(ledger::Segment))) {
            Opened->open(false);
            ThisLedger = ledger::OpenSegment(Opened->mem(), Opened->size(), why);
        }
    }
    if (fd >= 0)
        close(fd);
    if (!ThisLedger) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: each worker schedules alone with its part of the rate, since what they "
               "share cannot be used: " << why << "; start Squid again, its master included");
    }
}

void
CloseWorkerLedger()
{
    ThisLedger = nullptr;
    delete Opened;
    Opened = nullptr;
    delete Made; // and its name
    Made = nullptr;
}

bool
SharesLink()
{
    return ThisLedger != nullptr;
}

ledger::Directory *
DirectoryOfLink()
{
    return ThisLedger ? &ThisLedger->directory : nullptr;
}

std::shared_ptr<SharedLedger>
JoinWorkerLedger(const RequestConfig &config, const msfrs_time now)
{
    if (!ThisLedger)
        return nullptr;
    const uint32_t number = KidIdentifier > 0 ? KidIdentifier - 1 : 0; // workers are the first kids
    const auto slot = ledger::OwnSlot::OfWorker(*ThisLedger, number, now);
    if (!slot) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: this worker schedules alone, since " << ledger::Slots <<
               " parties share the link already");
        return nullptr;
    }
    PartyParams params;
    params.slot = *slot;
    params.config = NumberOf(config);
    return std::make_shared<SharedLedger>(*ThisLedger, params, &Gateway::Log, now);
}

std::vector<PartyPicture>
PartiesOfLink(const msfrs_time now)
{
    std::vector<PartyPicture> parties;
    if (!ThisLedger)
        return parties;
    for (int number = 0; number < Workers(); ++number) {
        PartyPicture worker;
        worker.slot = number;
        worker.kind = KindText(ledger::Kind::Worker);
        parties.push_back(worker);
    }
    for (const auto &party: ledger::Parties(*ThisLedger, now)) {
        if (party.slot < parties.size())
            parties[party.slot] = PictureOf(party);
        else
            parties.push_back(PictureOf(party));
    }
    return parties;
}

} // namespace msfrs::squid
