// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Admission in bytes: what released responses may still bring in their turns, against what the link holds.
///
/// A response is released while G < C (R + q*). G is the sum of the bytes that responses in service may still have in
/// their turns; R is the mean of their servers' base RTTs, weighted by these bytes; q* is the queueing delay that the
/// bottleneck is meant to have. G bytes in flight fill a pipe of C R and leave C q* in the queue, whoever they belong
/// to: the law has no feedback and nothing to learn. Not in the paper, which counts responses (RateController).
#ifndef MSFRS_WINDOW_FLIGHT_CREDIT_H
#define MSFRS_WINDOW_FLIGHT_CREDIT_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>

namespace msfrs {

class FlightCredit {
public:
    /// What one response may still bring; a part of the sums of at most one FlightCredit.
    struct Booking {
        int64_t bytes = 0;   ///< >= 0
        msfrs_time base = 0; ///< ns: base RTT of its server; 0: not known
    };

    /// Replaces a booking.
    void book(Booking &booking, int64_t bytes, msfrs_time base)
    {
        add(booking, -1);
        booking = {bytes, base};
        add(booking, 1);
    }

    int64_t bytes() const { return bytes_; } ///< G

    /// R, ns. \param otherwise where no server's base RTT is known
    msfrs_time base(const msfrs_time otherwise) const
    {
        return known_ > 0 ? static_cast<msfrs_time>(byteTime_ / static_cast<double>(known_)) : otherwise;
    }

private:
    void add(const Booking &booking, const int sign)
    {
        bytes_ += sign * booking.bytes;
        if (booking.base <= 0)
            return;
        known_ += sign * booking.bytes;
        byteTime_ += sign * static_cast<double>(booking.bytes) * static_cast<double>(booking.base);
    }

    int64_t bytes_ = 0;
    int64_t known_ = 0;   ///< of these: bytes of servers with a known base RTT
    double byteTime_ = 0; ///< sum of bytes times base RTT over these
};

} // namespace msfrs

#endif
