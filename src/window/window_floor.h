// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The floor beside traffic that does not pass the gateway. Such traffic fills the link as well, so that the rate
/// controller would make room for it without end, and receive windows that leave no queue at the provider are no match
/// for who fills that queue. While requests wait and responses have less than a share of the link, windows grow, and
/// places up to half of those who want one: they compete as so many TCP connections would, and the others still wait,
/// without whom there would be no weights.
///
/// Traffic that does not give way (a constant stream) is found out by that. TCP takes many round trips through a full
/// buffer to give way, so responses have half a minute for having more; if they have not, all goes back, and that is not
/// tried again for five minutes. Traffic that then takes what it is left has given itself away, and ends that. Not in
/// the paper.
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
    enum class Verdict { Yield, Stay, Grow }; ///< W+ may come down, or must not, or windows and places grow

    /// \param floor share of C that responses keep, 0 <= floor < 1; 0: none
    Verdict update(const Interval &, double floor);

    double factor() const { return factor_; } ///< of receive windows, from 1 to Most

private:
    void notice(const Interval &);
    Verdict yield();

    double factor_ = 1;
    double own_ = 1, others_ = 0, waiting_ = 0; ///< means over some seconds: shares of C, and of time somebody waited in
    double before_ = 0;     ///< own_ before the windows grew; while they do not, when that was given up
    msfrs_time short_ = 0;  ///< for how long responses have had less than the floor, ns
    msfrs_time rest_ = 0;   ///< for how long growth is given up yet, ns
    bool worth_ = false;    ///< whether growth brings more
};

} // namespace msfrs

#endif
