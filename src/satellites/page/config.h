// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The configuration of msfrs-page; docs/user/page.md describes the file.
#pragma once

#include "config/keywords.h"
#include "report/faults.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace msfrs::page {

/// An address to listen on or to connect to.
struct Endpoint {
    std::string address; ///< IPv4 or IPv6, without brackets
    uint16_t port = 0;
    bool v6 = false, loopback = false, any = false; ///< any: all addresses of the machine

    std::string host() const { return v6 ? "[" + address + "]" : address; }
    std::string text() const { return host() + ":" + std::to_string(port); }
};

/// A file with names of users.
struct NameFile {
    std::string path;
    bool leases = false; ///< of a DHCP server; otherwise lines of user and name
};

struct Config {
    Endpoint listen{"127.0.0.1", 3880, false, true, false};
    Endpoint squid{"127.0.0.1", 3128, false, true, false};
    std::optional<Endpoint> users; ///< address at which users see only their own page; nothing: none
    std::vector<NameFile> names;
    std::vector<std::string> hosts; ///< names for the page in browsers, in addition to addresses
    std::string tokenFile;          ///< empty: no token required
    std::string boosts;             ///< directory for requests of boosts, which msfrsctl grants; empty: none
    std::string faults = report::FaultsFile; ///< what msfrsctl watch has found
    std::string history;            ///< file of the last hour; empty: none
    std::string web;                ///< directory of the page's files
    std::string chart = "/usr/share/javascript/chart.js/chart.min.js"; ///< of Debian's libjs-chart.js
    int64_t pace = 1;               ///< s between two polls
    Written user{"nobody", {}};     ///< to run as when started as root
};

/// Interval of requests for all users, s: the most expensive of Squid's reports.
constexpr int64_t UsersPace = 5;

/// \param file for messages \throws RuleError with file, line, the value and what is allowed
Config ReadConfig(std::istream &, const std::string &file);
/// The same from the path of a file.
Config ReadConfig(const std::string &path);

/// Reads a token, the first line of a file.
/// \throws RuleError it is unreadable, readable by others, or invalid
std::string ReadToken(const std::string &path);

} // namespace msfrs::page
