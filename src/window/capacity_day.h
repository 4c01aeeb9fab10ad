// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The distribution of C over the last day, for administrators who want to set a fixed rate.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <array>
#include <cstdint>

namespace msfrs {

/// A histogram of rates in steps of 9 % for each of 24 hours: 18 KB in all cases.
class CapacityDay {
public:
    /// C has been `rate` bit/s, > 0, for `time` ns, >= 0, up to `now`.
    void add(double rate, msfrs_time time, msfrs_time now);

    /// Total time for which C was recorded, in this hour and the 23 before it, ns.
    msfrs_time known() const;
    /// \param share of known(), above 0 to 1
    /// \returns the lower bound of C in this share of it, rounded down by up to 9 %, bit/s; 0: nothing recorded
    double least(double share) const;

private:
    static constexpr size_t Hours = 24, Steps = 192;
    struct Hour {
        int64_t number = -1;                ///< hours since the clock's origin; negative: never used
        std::array<uint32_t, Steps> ms{};   ///< by rate
    };
    bool lately(const Hour &) const;

    std::array<Hour, Hours> hours_;
    int64_t latest_ = 0;
};

} // namespace msfrs
