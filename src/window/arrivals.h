// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What a released response is expected to bring in its next round trip, R + q*. FlightCredit books no more than that:
///
/// - Asked and not answered: all that it may have in flight until its answer is due, two round trips after the request,
///   or three if a handshake may come first. One is too few while a burst fills the bottleneck's queue. Then nothing,
///   until bytes come: a server that is silent or thinks does not use the link. Its late answer comes unbooked for its
///   first flight only.
/// - Answered: from the second round trip of a turn on, at most Doubling times what the last round trip brought, an
///   exponential mean: bytes count with exp(-age / (R + q*)). A stream books what it uses, not its user's share.
///
/// Releases stay bounded by C: each books b for R + q* or more, so no more than b per R + q* are released in the long
/// run.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace msfrs {

class Arrivals {
public:
    /// Growth of the bytes in flight from one round trip to the next, as in slow start.
    static constexpr double Doubling = 2;

    /// A turn begins, in which nothing is in flight. \param trip R + q*, s > 0
    void begin(const msfrs_time now, const double trip)
    {
        bytes_ = 0;
        settled_ = now + Time(2 * trip);
    }

    /// The server has a request to answer. \param trips > 0: round trips until the answer is due
    void ask(const msfrs_time now, const double trip, const double trips)
    {
        asked_ = true;
        due_ = now + Time(trips * trip);
    }

    /// `bytes` >= 0 have arrived.
    void arrived(const int64_t bytes, const msfrs_time now, const double trip)
    {
        asked_ &= bytes == 0;
        const double age = 1e-9 * static_cast<double>(std::max<msfrs_time>(now - at_, 0));
        bytes_ = bytes_ * std::exp(-age / trip) + static_cast<double>(bytes);
        at_ = now;
    }

    /// \param most bytes that it may have in flight, >= 0
    int64_t expected(const int64_t most, const msfrs_time now) const
    {
        if (asked_)
            return now > due_ ? 0 : most;
        return at_ > settled_ ? std::min(most, static_cast<int64_t>(Doubling * bytes_)) : most;
    }

private:
    static msfrs_time Time(const double seconds) { return static_cast<msfrs_time>(1e9 * seconds); }

    bool asked_ = false;
    double bytes_ = 0;       ///< the mean, as of at_
    msfrs_time at_ = 0;      ///< ns: latest bytes
    msfrs_time due_ = 0;     ///< ns: of the answer
    msfrs_time settled_ = 0; ///< ns: once bytes come later than this, the mean counts
};

} // namespace msfrs
