// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The configuration of msfrs-share; conf/share.conf describes the file.
#pragma once

#include "daemon/machine.h"
#include "satellites/share/redis_store.h"
#include "satellites/share/sharing.h"

#include <iosfwd>
#include <string>

namespace msfrs::share {

constexpr const char *Program = "msfrs-share";

struct Config {
    SharingParams sharing;
    RedisParams store;     ///< ReadPassword() fills in its password
    Written passwordFile;
    std::string segment;   ///< name of the shared memory
    Written control;       ///< path of the control socket
    Written user{"proxy", {}};
};

/// \param file for messages \throws RuleError with file, line, the value and what is allowed
Config ReadConfig(std::istream &, const std::string &file);
Config ReadConfig(const std::string &path);

/// Reads the password, the first line of its file, if there is one. Error messages do not show it.
/// \throws RuleError also if the file is readable by everyone
void ReadPassword(Config &);

} // namespace msfrs::share
