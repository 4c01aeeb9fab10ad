// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Checks of a configuration against the machine it is to run on: its user, and the path of its control socket.
#pragma once

#include "config/keywords.h"

#include <string>

namespace msfrs {

/// Checks that the user exists and is not root. \throws RuleError with the line
void CheckUser(const Written &user);
/// Checks that the socket can be created. \throws RuleError with the line
void CheckControl(const Written &control);

/// Creates the directory of the control socket, if only that is missing, and gives it to the user, who can then remove
/// the socket at the end. \throws RuleError
void MakeControlDirectory(const Written &control, const std::string &user);

/// Why this process, having become the user, will not be able to remove the control socket; empty if it will.
std::string WhyControlStays(const Written &control, const std::string &user);

/// Checks that this process, having become the user, may read a file. \throws RuleError
void CheckReadable(const std::string &path, const std::string &user);

} // namespace msfrs
