/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "globals.h"
#include "ipc/mem/Segment.h"
#include "msfrs/Gateway.h"
#include "msfrs/Picture.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"
#include "tools.h"

#include "ledger/report.h"
#include "ledger/shared.h"

#include <algorithm>

namespace msfrs::squid
{

namespace
{

/// Squid puts the name of the service before it, so that several Squids do not meet.
const char * const Label = "msfrs_ledger";

Ipc::Mem::Segment *Memory = nullptr;
ledger::Segment *ThisLedger = nullptr; ///< in Memory

bool
SeveralWorkers()
{
    return UsingSmp() && Config.workers > 1;
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
    if (!SeveralWorkers())
        return;
    Memory = new Ipc::Mem::Segment(Label);
    Memory->create(sizeof(ledger::Segment));
    ledger::FormatSegment(Memory->mem());
}

void
OpenWorkerLedger()
{
    if (!SeveralWorkers() || !IamWorkerProcess())
        return;
    if (Config.workers > static_cast<int>(ledger::Slots)) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: each of " << Config.workers << " workers schedules alone with its part "
               "of the rate: at most " << ledger::Slots << " can share the link");
        return;
    }
    Memory = new Ipc::Mem::Segment(Label);
    Memory->open(false);
    std::string why;
    ThisLedger = ledger::OpenSegment(Memory->mem(), Memory->size(), why);
    if (!ThisLedger) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: each worker schedules alone with its part of the rate, since what they "
               "share cannot be used: " << why << "; start Squid again, so that all are of one version");
    }
}

void
CloseWorkerLedger()
{
    ThisLedger = nullptr;
    delete Memory;
    Memory = nullptr;
}

bool
SharesLink()
{
    return ThisLedger != nullptr;
}

std::shared_ptr<SharedLedger>
JoinWorkerLedger(const RequestConfig &config, const msfrs_time now)
{
    if (!ThisLedger)
        return nullptr;
    PartyParams params;
    params.slot = static_cast<uint32_t>(KidIdentifier - 1); // workers are the first kids
    params.config = NumberOf(config);
    return std::make_shared<SharedLedger>(*ThisLedger, params, &Gateway::Log, now);
}

std::vector<PartyPicture>
PartiesOfLink(const msfrs_time now)
{
    std::vector<PartyPicture> parties;
    if (!ThisLedger)
        return parties;
    for (int number = 0; number < Config.workers; ++number) {
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
