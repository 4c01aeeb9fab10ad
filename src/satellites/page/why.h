// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// "Why is it slow?", answered from the current state: by msfrs-page, and by msfrs-why for `msfrsctl why`.
#ifndef MSFRS_PAGE_WHY_H
#define MSFRS_PAGE_WHY_H

#include "satellites/page/gateway.h"
#include "satellites/page/users.h"

namespace msfrs::page {

/// The known state of the gateway.
struct Situation {
    GatewayState gateway;
    Flow flow;
    ManagerReport report;
    Users users;
};

struct Verdict {
    std::vector<std::string> why;      ///< the verdict, then the figures behind it, then what to do; never empty
    double waiting = 0;                ///< waiting requests, listed or not
    std::vector<const HeldRow *> held; ///< those of them that Squid lists; point into the Situation
    std::vector<const User *> users;   ///< users in question, one for each class; point into the Situation
};

/// \param name of a user; otherwise of a host, a domain or a transaction with waiting requests
Verdict WhySlow(const Situation &, const std::string &name);

/// The meaning of Squid not answering at an address, and what to do.
std::string SilentText(const std::string &address);

/// Share of the link that bypasses Squid; nothing: unknown, or not significantly above the error of measurement.
std::optional<double> PastSquid(const Situation &);

/// Bit/s as readable text: "1.5 Mbit/s".
std::string RateText(double rate);

} // namespace msfrs::page

#endif
