// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The sum of the receive windows of all responses in service: phi C (R + q*).
///
/// Windows that add up to C (R + q*), R being the round-trip time and q* the queue, would just fill the link and leave
/// q* at the provider. But some windows are not used: a server has not answered yet, an exchange is over and this is
/// not known, a pause has just ended. So phi > 1 makes up for these, and follows the utilisation while requests wait.
/// More places would not help: each would get a smaller window. Not in the paper.
#ifndef MSFRS_WINDOW_FLIGHT_BUDGET_H
#define MSFRS_WINDOW_FLIGHT_BUDGET_H

#include "plugin/msfrs_plugin.h"

namespace msfrs {

class FlightBudget {
public:
    static constexpr double Least = 1, Most = 1.5; ///< range of phi

    /// Adjusts phi at the end of an interval.
    /// \param elapsed its length, ns > 0
    /// \param utilisation U of it, share of C
    /// \param fullShare share of the interval in which a request waited for a place, 0 to 1
    /// \param target U+, share of C
    void update(msfrs_time elapsed, double utilisation, double fullShare, double target);

    double factor() const { return factor_; } ///< phi, from Least to Most

private:
    double factor_ = 1;
    msfrs_time gathered_ = 0; ///< ns, sum of the intervals in which requests waited
    double carried_ = 0;      ///< sum of U times length over these, ns
};

} // namespace msfrs

#endif
