// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What part of W+ each gateway is due. Pure but for what it remembers: who had more than its share of late.
#ifndef MSFRS_SHARE_DUES_H
#define MSFRS_SHARE_DUES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msfrs::share {

/// A gateway, as far as its share goes.
struct Claim {
    double demand = 0;  ///< >= 0: sum of its active users' weights
    double places = 0;  ///< in service
    double waiting = 0; ///< requests that would take one now
    double served = 0;  ///< bytes that it was charged since the last call
};

/// Max-min by demand, corrected by the bytes that places brought: servers far away make a place worth less. While two
/// or more gateways have somebody waiting, each has a balance, the bytes it had beyond its share. Who is ahead by what
/// its share is in a second is due half of its places, who is behind as much one and a half times.
class Dues {
public:
    static constexpr double Forget = 120; ///< s after which a balance has fallen to 1/e
    static constexpr double Most = 0.5;  ///< of its share: how far a balance moves what a gateway is due

    explicit Dues(const size_t gateways): balances_(gateways, 0.0) {}

    /// \param claims one for each gateway, always in the same order
    /// \param limit W+ >= 1 \param rate C in bit/s; 0: not known, nothing is corrected
    /// \param seconds since the last call
    /// \returns places that each may have, in fractions; who does not want its share has what it wants
    std::vector<double> places(const std::vector<Claim> &claims, double limit, double rate, double seconds);

    double balance(const size_t n) const { return balances_[n]; }

private:
    std::vector<double> balances_;
};

} // namespace msfrs::share

#endif
