/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_WORKERLEDGER_H
#define SQUID_SRC_MSFRS_WORKERLEDGER_H

#include "plugin/msfrs_plugin.h"

#include <memory>
#include <string>
#include <vector>

namespace msfrs
{
class SharedLedger;
struct RequestConfig;

namespace ledger
{
struct Directory;
struct QuotaTable;
}
}

namespace msfrs::squid
{

struct PartyPicture;

/// Makes the memory in which those who share the link tell each other what they have of it: several workers, and with
/// msfrs_link shared others. To be called in the master process. It does not matter whether msfrs is on: workers may be
/// told so later, the master not. Pages that nobody has written take no memory. Where it cannot be made, this is logged.
void MakeWorkerLedger();

/// Finds that memory, in a worker. Where it is not there, or of another version of this program, this is logged, and
/// each worker schedules alone with its part of the rate.
void OpenWorkerLedger();

/// Leaves it. The master's goes for good.
void CloseWorkerLedger();

/// whether this process is a worker that shares the link by that memory
bool SharesLink();

/// In one clause, why this process is a worker that should share the link and does not; empty: it does, or should not.
const std::string &WhyLinkIsNotShared();

/// What those are told who share the link by that memory; nil if this process does not.
ledger::Directory *DirectoryOfLink();

/// Where all who share the link by that memory count quotas; nil if this process does not.
ledger::QuotaTable *QuotasOfLink();

/// Takes the slot of this worker, whatever a worker that had it before has left there; another slot where another party
/// lives in it.
/// \returns nil if this process does not share the link, or finds no slot
std::shared_ptr<SharedLedger> JoinWorkerLedger(const RequestConfig &, msfrs_time now);

/// Who share the link, by slot, workers that do not live included; none if this process does not.
std::vector<PartyPicture> PartiesOfLink(msfrs_time now);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_WORKERLEDGER_H */

