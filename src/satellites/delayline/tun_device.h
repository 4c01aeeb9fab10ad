// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A TUN interface, in this or another network namespace.
#ifndef MSFRS_DELAYLINE_TUN_DEVICE_H
#define MSFRS_DELAYLINE_TUN_DEVICE_H

#include "daemon/descriptor.h"

#include <string>

namespace msfrs::delayline {

/// Creates or attaches to the TUN interface `spec`: NAME, or NAME@FILE where FILE is a network namespace such as
/// /run/netns/isp. The descriptor is non-blocking and yields IP packets without any header.
/// \throws SystemError with the name, the operation and the reason
Descriptor OpenTun(const std::string &spec);

/// Asks the kernel to prefer this process over ordinary ones, so that packets are not late on a busy machine.
/// \returns the reason of a refusal; empty if granted
std::string PreferThisProcess();

} // namespace msfrs::delayline

#endif
