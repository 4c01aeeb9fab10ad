// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The report of a running msfrs-share: as text for people, and as OpenMetrics.
#pragma once

#include "satellites/share/sharing.h"

#include <string>

namespace msfrs::share {

/// A snapshot of all figures.
struct Report {
    std::string gateway, link, store;
    double share = 0;
    double upSeconds = 0;
    bool segment = false;             ///< mapped
    size_t parties = 0;               ///< of this machine
    uint64_t crowded = 0;
    SharingReport sharing;
};

std::string Text(const Report &);
std::string OpenMetrics(const Report &);

} // namespace msfrs::share
