// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// "Why is it slow for me?", answered from what is known now.
#ifndef MSFRS_PAGE_WHY_H
#define MSFRS_PAGE_WHY_H

#include "page/gateway.h"
#include "page/users.h"

namespace msfrs::page {

/// What is known of the gateway now.
struct Situation {
    GatewayState gateway;
    Flow flow;
    ManagerReport report;
    Users users;
};

/// Sentences, the most important first; never empty.
std::vector<std::string> WhySlow(const Situation &, const std::string &user);

/// Bit/s as people read them: "1.5 Mbit/s".
std::string RateText(double rate);

} // namespace msfrs::page

#endif
