// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What C was over the last day: for who wants to set a rate once and for all.
#ifndef MSFRS_WINDOW_CAPACITY_DAY_H
#define MSFRS_WINDOW_CAPACITY_DAY_H

#include "plugin/msfrs_plugin.h"

#include <array>
#include <cstdint>

namespace msfrs {

/// Of each of 24 hours a histogram of rates in steps of 9 %: 18 KB, whatever happens.
class CapacityDay {
public:
    /// C has been `rate` bit/s, > 0, for `time` ns, >= 0, up to `now`.
    void add(double rate, msfrs_time time, msfrs_time now);

    /// For how long in all it was told what C was, in this hour and the 23 before it, ns.
    msfrs_time known() const;
    /// \param share of known(), above 0 to 1
    /// \returns what C was at least for so much of it, rounded down by up to 9 %, bit/s; 0: nothing is known
    double least(double share) const;

private:
    static constexpr size_t Hours = 24, Steps = 192;
    struct Hour {
        int64_t number = -1;                ///< of it, since the clock's beginning; negative: never used
        std::array<uint32_t, Steps> ms{};   ///< by rate
    };
    bool lately(const Hour &) const;

    std::array<Hour, Hours> hours_;
    int64_t latest_ = 0;
};

} // namespace msfrs

#endif
