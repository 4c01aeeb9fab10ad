// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The floor beside traffic that does not pass the gateway. Such traffic fills the link as well, so that the rate
/// controller would make room for it without end, and receive windows that leave no queue at the provider are no match
/// for who fills that queue. While requests wait and responses have less than a share of the link, their receive
/// windows grow: they compete as so many TCP connections would. Places do not grow for that: whoever has one would no
/// longer wait, and weights would be lost. Traffic that does not give way (a constant stream) is found out by that:
/// where twice the windows have not brought a quarter more, they go back, and that is not tried again for a minute. Not
/// in the paper.
#ifndef MSFRS_WINDOW_WINDOW_FLOOR_H
#define MSFRS_WINDOW_WINDOW_FLOOR_H

#include "plugin/msfrs_plugin.h"

namespace msfrs {

class WindowFloor {
public:
    static constexpr double Most = 8;

    /// What is found at the end of an interval.
    struct Interval {
        msfrs_time elapsed;  ///< its length, ns > 0
        double utilisation;  ///< U, share of C
        double own;          ///< what responses had of C; negative: not known
        double fullShare;    ///< share of it in which somebody waited for the window, 0 to 1
    };
    enum class Verdict { Yield, Stay, Grow }; ///< W+ may come down, or must not, or windows (and few places) grow

    /// \param floor share of C that responses keep, 0 <= floor < 1; 0: none
    Verdict update(const Interval &, double floor);

    double factor() const { return factor_; } ///< of receive windows, from 1 to Most

private:
    double factor_ = 1;
    double tried_ = 0, triedOwn_ = 0; ///< factor and share when growth was last worth it; 0: not tried
    msfrs_time rest_ = 0;             ///< how long the floor is given up yet, ns
};

} // namespace msfrs

#endif
