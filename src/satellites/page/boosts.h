// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Asks `msfrsctl set --expire` for boosts. msfrs-page has no right to change squid.conf or to control Squid: it leaves
/// empty files, and root decides by their names. So the most that an intruder in msfrs-page could have is a few boosts.
#pragma once

#include <string>

namespace msfrs::page {

class Boosts {
public:
    static constexpr size_t MostWaiting = 10; ///< requests that msfrsctl has not taken yet; it grants as many

    /// \param directory is made if it does not exist \throws SystemError
    explicit Boosts(std::string directory);

    /// Asks for an hour's boost of a user. \throws Refused with the reason
    void ask(const std::string &user) const;

private:
    std::string directory_;
};

} // namespace msfrs::page
