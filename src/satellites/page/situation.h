// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The known state of the gateway, and the judgements that all sentences about it share.
#pragma once

#include "report/faults.h"
#include "satellites/page/gateway.h"
#include "satellites/page/users.h"

namespace msfrs::page {

using report::Fault;

struct Situation {
    GatewayState gateway;
    Flow flow;
    ManagerReport report;
    Users users;
    std::vector<Fault> faults;        ///< worst first
    std::vector<std::string> refused; ///< classes of which requests were refused in the last minute
};

constexpr double Full = 0.9;      ///< utilisation above which the link counts as full
constexpr double WrongRate = 1.1; ///< utilisation above which rate= is below what the link carries; overhead= errs less
constexpr double LongQueue = 0.1; ///< s of queueing delay at the provider that a user notices
constexpr size_t MostListed = 50; ///< rows of mgr:msfrs `held` (Snapshot::MostHeld): at this number, more may wait
constexpr double UsedOver = 10;   ///< averaging time of the utilisation, s; one interval may hold a page or nothing
constexpr double PastOver = 30;   ///< averaging time of the share that bypasses Squid, s

/// Whether it waits for its first bytes. A response is paused between two quanta: a download that takes turns.
inline bool Waits(const HeldRow &row) { return row.what != "response"; }

/// Utilisation of the link in the last UsedOver seconds.
double Used(const Situation &);
/// Share of the link that bypasses Squid; nothing: unknown, or not significantly above the error of measurement.
std::optional<double> PastSquid(const Situation &);

/// Part of a sentence in more than one answer: the probable cause of a long queue at the provider, and what to do.
std::string CauseOfQueue(const Situation &);

} // namespace msfrs::page
