// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How many bytes those in service may have on their way together, and with that how large each one's receive window
/// is.
///
/// Windows that add up to C (R + q*) would just fill the link and leave q* at the provider. Some of them are not used:
/// a server has not answered yet, an exchange is over and nobody knows, a pause has just ended. So the sum is phi C (R
/// + q*), and phi follows what the link carries while requests wait. More places would not do: each would get a smaller
/// window.
#ifndef MSFRS_WINDOW_FLIGHT_BUDGET_H
#define MSFRS_WINDOW_FLIGHT_BUDGET_H

#include "plugin/msfrs_plugin.h"

namespace msfrs {

class FlightBudget {
public:
    static constexpr double Least = 1, Most = 1.5;

    /// An interval has ended.
    /// \param elapsed its length, ns > 0
    /// \param utilisation U of it, share of C
    /// \param fullShare share of it in which somebody waited for the window, 0 to 1
    /// \param target U+, share of C
    void update(msfrs_time elapsed, double utilisation, double fullShare, double target);

    double factor() const { return factor_; } ///< phi, from Least to Most

private:
    double factor_ = 1;
    msfrs_time gathered_ = 0; ///< ns of intervals in which requests waited
    double carried_ = 0;      ///< U times time over them, ns
};

} // namespace msfrs

#endif
