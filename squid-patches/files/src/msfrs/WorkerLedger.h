/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_WORKERLEDGER_H
#define SQUID_SRC_MSFRS_WORKERLEDGER_H

#include "msfrs/lib/plugin/msfrs_plugin.h"

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

namespace msfrs::report
{
struct PartySnapshot;
}

namespace msfrs::squid
{

/// Creates the shared memory in which the parties on the link publish their state: several workers, and with msfrs_link
/// shared, other programs. To be called in the master process, even while msfrs is off: a reconfiguration may turn it
/// on in the workers, but not in the master. Pages never written take no memory. A failure is logged.
void MakeWorkerLedger();

/// Opens that memory in a worker. If it is missing, or of another version of this program, this is logged, and each
/// worker schedules alone with its part of the rate.
void OpenWorkerLedger();

/// Closes it; the master also removes it.
void CloseWorkerLedger();

/// whether this process is a worker that shares the link through that memory
bool SharesLink();

/// Why this worker does not share the link although it should, in one clause; empty: it does, or should not.
const std::string &WhyLinkIsNotShared();

/// Ends other workers that hang, and logs that: Squid's master starts others in their place. Call it ten times a second.
void EndHungWorkers(msfrs_time now);

/// The directory that the other parties on the link read; nil if this process does not share it.
ledger::Directory *DirectoryOfLink();

/// The quota counts of all parties on the link; nil if this process does not share it.
ledger::QuotaTable *QuotasOfLink();

/// Takes the ledger slot of this worker, whatever an earlier worker has left in it; another slot if a live party of
/// another kind has it.
/// \returns nil if this process does not share the link, or finds no slot
std::shared_ptr<SharedLedger> JoinWorkerLedger(const RequestConfig &, msfrs_time now);

/// A hash of what the report shows of a configuration, for comparison. Only processes of the same program have the
/// same hash of the same configuration.
uint64_t NumberOf(const RequestConfig &);

/// The parties on the link, by slot, dead workers included; none if this process does not share it.
std::vector<report::PartySnapshot> PartiesOfLink(msfrs_time now);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_WORKERLEDGER_H */
