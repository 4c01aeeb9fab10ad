// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What a configuration asks of the machine it is to run on: its user, and the place of its control socket.
#ifndef MSFRS_DAEMON_MACHINE_H
#define MSFRS_DAEMON_MACHINE_H

#include <string>

namespace msfrs {

/// What was written of a user or a path, and where.
struct Written {
    std::string value; ///< empty: nothing
    std::string where; ///< the line it is from; empty: nobody wrote one
};

/// Checks that the user exists and is not root. \throws RuleError with the line
void CheckUser(const Written &user);
/// Whether there is a place for the socket. \throws RuleError with the line
void CheckControl(const Written &control);

/// Makes the directory of the control socket, if only that is missing, and gives it to the user, who can then remove
/// the socket at the end. \throws RuleError
void MakeControlDirectory(const Written &control, const std::string &user);

/// Why this process, having become the user, will not be able to remove the control socket; empty if it will.
std::string WhyControlStays(const Written &control, const std::string &user);

/// Whether this process, having become the user, may read a file. \throws RuleError
void CheckReadable(const std::string &path, const std::string &user);

} // namespace msfrs

#endif
