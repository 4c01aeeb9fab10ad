// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Admission control in bytes: the rate at which released responses may arrive, against the capacity of the link.
///
/// By Little's law, a response that may have b bytes in flight from a server of base RTT R takes b / (R + q*) of the
/// link if the bottleneck queue is q*. b follows from its receive window, and is at most the rest of its turn, and what
/// the next round trip is expected to bring (Arrivals). The scheduler releases a response while
///
///     sum of b / (R + q*)  <  C
///
/// so that bytes in flight fill the link and a queue of q*, for any mix of users and of near and far servers. A
/// response that has not begun counts like the others. Not in the paper, which counts responses (PaperWindow).
#pragma once

#include <cstdint>

namespace msfrs {

class FlightCredit {
public:
    /// What one response may have in flight; included in the sums of at most one FlightCredit.
    struct Booking {
        int64_t bytes = 0; ///< b >= 0
        double rate = 0;   ///< bytes/s
    };

    /// Replaces a booking.
    /// \param bytes b >= 0
    /// \param seconds R + q*, > 0
    void book(Booking &booking, const int64_t bytes, const double seconds)
    {
        bytes_ -= booking.bytes;
        rate_ -= booking.rate;
        booking = {bytes, static_cast<double>(bytes) / seconds};
        bytes_ += bytes;
        rate_ = bytes_ > 0 ? rate_ + booking.rate : 0; // rounding errors do not accumulate
    }

    int64_t bytes() const { return bytes_; }
    double rate() const { return rate_; } ///< bytes/s

private:
    int64_t bytes_ = 0;
    double rate_ = 0;
};

} // namespace msfrs
