// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// "Why is it slow?", answered from what is known now: by msfrs-page, and by msfrs-why for `msfrsctl why`.
#ifndef MSFRS_PAGE_WHY_H
#define MSFRS_PAGE_WHY_H

#include "satellites/page/gateway.h"
#include "satellites/page/users.h"

namespace msfrs::page {

/// What is known of the gateway now.
struct Situation {
    GatewayState gateway;
    Flow flow;
    ManagerReport report;
    Users users;
};

struct Verdict {
    std::vector<std::string> why;      ///< the verdict, then the figures behind it, then what to do; never empty
    double waiting = 0;                ///< requests that wait, listed or not
    std::vector<const HeldRow *> held; ///< of these, those that Squid lists; of the Situation
    std::vector<const User *> users;   ///< whom it is about, one for each class; of the Situation
};

/// \param name of a user; else of a host or a domain, or a transaction, of which something waits
Verdict WhySlow(const Situation &, const std::string &name);

/// What it means that Squid does not answer at an address, and what to do.
std::string SilentText(const std::string &address);

/// Share of the link that bypasses Squid; nothing: it is not known, or not certainly above the error of measurement.
std::optional<double> PastSquid(const Situation &);

/// Bit/s as people read them: "1.5 Mbit/s".
std::string RateText(double rate);

} // namespace msfrs::page

#endif
