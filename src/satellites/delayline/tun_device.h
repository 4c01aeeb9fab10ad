// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A TUN interface, in this or another network namespace.
#ifndef MSFRS_DELAYLINE_TUN_DEVICE_H
#define MSFRS_DELAYLINE_TUN_DEVICE_H

#include "daemon/descriptor.h"

#include <string>

namespace msfrs::delayline {

/// Makes or attaches to the TUN interface `spec`: NAME, or NAME@FILE where FILE is a network namespace such as
/// /run/netns/isp. The descriptor is non-blocking and gives IP packets without any header.
/// \throws SystemError with the name, what failed and why
Descriptor OpenTun(const std::string &spec);

/// Asks the kernel to run this process before ordinary ones: on a busy machine packets would be late otherwise.
/// \returns why not, empty if it was granted
std::string PreferThisProcess();

} // namespace msfrs::delayline

#endif
