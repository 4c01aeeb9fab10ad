// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What msfrsctl knows to be wrong with the gateway, and Squid does not: msfrsctl/faults.py writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msfrs::report {

/// Where msfrsctl publishes them (FAULTS of msfrsctl/site.py).
constexpr const char *FaultsFile = "/run/msfrsctl/faults";

struct Fault {
    std::string code; ///< off, unreachable, edge, log, names or test
    std::string text; ///< sentences for the administrator
};

/// Lines of a code, a tab and the text, worst first; others are skipped. Control characters become spaces.
std::vector<Fault> ReadFaults(std::string_view text);

/// The same from a file; none if it cannot be read. Reads at most 64 KB.
std::vector<Fault> FaultsOf(const std::string &path = FaultsFile);

} // namespace msfrs::report
