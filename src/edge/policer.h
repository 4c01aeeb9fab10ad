// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The policer of a rule: a token bucket.
///
/// Paper: Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), section "Classifier".
///
///     token += rate * (now - last_arrival_time), at most the depth; last_arrival_time = now   at every arrival,
///     a packet that is dropped included; a packet is admitted if its length is at most the tokens, and takes them.
///
/// Tokens are counted in 10^-9 bits, the product of rate and nanoseconds, so nothing is rounded: the traffic
/// admitted in any time t never exceeds depth + rate * t.
#pragma once

#include <cstdint>

namespace msfrs::edge {

/// The limit of a rule.
struct TokenRate {
    static constexpr int64_t MaxRate = 1'000'000'000'000; ///< bit/s
    /// Others are refused. A bucket of MaxDepth is 8 * 10^18 units of 10^-9 bits, which fits 64 bits.
    static constexpr int64_t MinDepth = 64, MaxDepth = 1'000'000'000; ///< bytes

    int64_t rate;  ///< bit/s, 1..MaxRate
    int64_t depth; ///< bytes, MinDepth..MaxDepth

    friend bool operator==(const TokenRate &a, const TokenRate &b) { return a.rate == b.rate && a.depth == b.depth; }
};

class Policer {
public:
    /// The bucket starts full. \throws std::invalid_argument out of range
    explicit Policer(const TokenRate &);

    /// Whether a packet of `length` bytes (>= 0) may pass. A clock that goes back adds no tokens and is used from then
    /// on; one that jumps ahead at most fills the bucket. \param now any clock's nanoseconds
    bool admit(int64_t length, int64_t now);

    /// 10^-9 bits in the bucket, as of the latest arrival.
    int64_t tokens() const { return tokens_; }

private:
    int64_t rate_, full_, tokens_;
    int64_t last_ = 0; ///< latest arrival; before the first the bucket is full at any time
};

} // namespace msfrs::edge
