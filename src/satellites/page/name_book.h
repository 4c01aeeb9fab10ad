// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Names of users: as the administrator has written them, and as DHCP clients call themselves.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace msfrs::page {

class NameBook {
public:
    static constexpr size_t Most = 65'536;  ///< entries; further ones are ignored
    static constexpr size_t MostLength = 63; ///< bytes of a name; others are ignored

    /// Reads lines `USER NAME`, such as /etc/hosts has: an address, network, hardware address or login, and the name up
    /// to the end of the line. `#` begins a comment. Of two lines for a user the first counts.
    void addNames(std::string_view text);
    /// Reads leases of dnsmasq or ISC dhcpd. A client chooses its name freely; only letters, digits, '-', '_' and '.'
    /// are accepted. Of two leases of an address the last counts.
    void addLeases(std::string_view text);

    /// The name of a user, preferably the administrator's; empty: none.
    std::string of(const std::string &user) const;
    /// The hardware address that has leased an address; empty: unknown.
    std::string hardwareOf(const std::string &address) const;

private:
    struct Lease {
        std::string name, hardware;
    };
    void lease(const std::string &address, Lease);

    std::unordered_map<std::string, std::string> names_;   // by user in lower case
    std::unordered_map<std::string, Lease> leases_;        // by address
    std::unordered_map<std::string, std::string> leased_;  // name by hardware address
};

} // namespace msfrs::page
