// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A TUN interface, in this or another network namespace.
#pragma once

#include "daemon/descriptor.h"

#include <string>

namespace msfrs::delayline {

/// Creates or attaches to the TUN interface `spec`: NAME, or NAME@FILE where FILE is a network namespace such as
/// /run/netns/isp. The descriptor is non-blocking and yields IP packets without any header.
/// \throws SystemError with the name, the operation and the reason
Descriptor OpenTun(const std::string &spec);

} // namespace msfrs::delayline
