// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The configuration of msfrs-page; docs/user/page.md describes the file.
#ifndef MSFRS_PAGE_CONFIG_H
#define MSFRS_PAGE_CONFIG_H

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace msfrs::page {

/// Where one listens, or asks.
struct Endpoint {
    std::string address; ///< IPv4 or IPv6, without brackets
    uint16_t port = 0;
    bool v6 = false, loopback = false, any = false; ///< any: all addresses of the machine

    std::string host() const { return v6 ? "[" + address + "]" : address; }
    std::string text() const { return host() + ":" + std::to_string(port); }
};

struct Config {
    Endpoint listen{"127.0.0.1", 3880, false, true, false};
    Endpoint squid{"127.0.0.1", 3128, false, true, false};
    std::vector<std::string> hosts; ///< by which browsers may call the page, beside addresses
    std::string tokenFile;          ///< empty: no token is wanted
    std::string history;            ///< where the last hour is kept; empty: nowhere
    std::string web;                ///< where the page's files are
    std::string chart = "/usr/share/javascript/chart.js/chart.min.js"; ///< as Debian's libjs-chart.js has it
    int64_t pace = 1;               ///< s between two polls
    std::string user = "nobody";    ///< to run as when started as root
    std::string userWhere;          ///< the line it is from
};

/// How often Squid is asked for all users, s: it is the dearest of its reports.
constexpr int64_t UsersPace = 5;

/// \param file for messages \throws RuleError with file, line, the value and what is allowed
Config ReadConfig(std::istream &, const std::string &file);
/// The same from a file's path.
Config ReadConfig(const std::string &path);

/// The token in a file: its first line.
/// \throws RuleError it cannot be read, others may read it, or it is none
std::string ReadToken(const std::string &path);

} // namespace msfrs::page

#endif
