// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Checks of a configuration against the machine it is to run on; those of single paths are in daemon/machine.h.
#ifndef MSFRS_EDGE_DAEMON_MACHINE_H
#define MSFRS_EDGE_DAEMON_MACHINE_H

#include "daemon/machine.h"
#include "edge/daemon/config.h"

namespace msfrs::edge {

inline Written ControlOf(const Config &config) { return {config.control, config.controlWhere}; }

/// Checks the user and the path of the control socket. \throws RuleError with the line
void CheckMachine(const Config &);

/// Reads the file as a reload will; call it as the user. \returns an empty string, or another reason why reloads will
/// fail, such as a plugin that the user may not read
/// \throws RuleError the user may not read the file, or its rules
std::string CheckReload(const Config &, const std::string &file, const std::string &pluginDir);

} // namespace msfrs::edge

#endif
