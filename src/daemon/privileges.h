// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Giving up root.
#pragma once

#include <string>

namespace msfrs {

/// The privileges of root that are kept.
enum class Keep { Nothing, NetAdmin };

/// Gives up root for `user`, every way back to it, and all capabilities but those named; later threads inherit that.
/// A process that is not root only gives up the capabilities.
/// \throws SystemError
void DropPrivileges(const std::string &user, Keep = Keep::Nothing);

/// Whether this process has the capability CAP_NET_ADMIN now.
bool HasNetAdmin();

} // namespace msfrs
