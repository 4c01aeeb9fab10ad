// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What a configuration asks of the machine it is to run on, and the directory of the control socket.
#ifndef MSFRS_EDGE_DAEMON_MACHINE_H
#define MSFRS_EDGE_DAEMON_MACHINE_H

#include "edge/daemon/config.h"

namespace msfrs::edge {

/// Whether there is such a user, and a place for the control socket. \throws RuleError with the line
void CheckMachine(const Config &);

/// Makes the directory of the control socket, if only that is missing, and gives it to the user, who can then remove
/// the socket at the end. \throws RuleError
void MakeControlDirectory(const Config &);

/// Why this process, having become the user, will not be able to remove the control socket; empty if it will.
std::string WhyControlStays(const Config &);

/// Reads the file as a reload will: call it as the user. \returns why reloads will be refused for another reason, such as
/// a plugin that the user may not read; or an empty string
/// \throws RuleError the user may not read the file, or its rules
std::string CheckReload(const Config &, const std::string &file, const std::string &pluginDir);

} // namespace msfrs::edge

#endif
