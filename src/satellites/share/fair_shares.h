// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Each gateway's fair share of W+. Pure, except for its memory of the gateways that recently exceeded their shares.
#pragma once

#include <cstddef>
#include <vector>

namespace msfrs::share {

/// The data of a gateway that determine its share.
struct Claim {
    double demand = 0;  ///< >= 0: sum of the weights of its active users
    double places = 0;  ///< slots in service
    double waiting = 0; ///< requests that could take a slot now
    double served = 0;  ///< bytes charged to it since the last call
};

/// Max-min by demand, corrected by the bytes that slots carried, since distant servers make a slot worth less. While
/// two or more gateways have waiting requests, each has a balance, the bytes by which it has exceeded its share. A
/// gateway that is ahead by its share of one second gets half of its slots; one that is behind by as much gets one and
/// a half times as many. Every gateway computes the balances by itself: they agree if all begin at the same time, and
/// forgetting lets differences decay.
class FairShares {
public:
    // docs/lab/constants.md has half and double: Most = 0.25 corrects slots that differ by 1.7 at most, 0.5 by 3.
    static constexpr double Forget = 120; ///< s after which a balance has fallen to 1/e
    static constexpr double Most = 0.5;  ///< of its share: maximum correction of a fair share by a balance

    explicit FairShares(const size_t gateways): balances_(gateways, 0.0) {}

    /// \param claims one for each gateway, always in the same order
    /// \param limit W+ >= 1 \param rate C in bit/s; 0: unknown, no correction
    /// \param seconds since the last call
    /// \returns slots for each, fractional; a gateway that does not need its share gets what it needs
    std::vector<double> places(const std::vector<Claim> &claims, double limit, double rate, double seconds);

    double balance(const size_t n) const { return balances_[n]; }

private:
    std::vector<double> balances_;
};

} // namespace msfrs::share
