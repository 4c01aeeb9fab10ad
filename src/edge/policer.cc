// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/policer.h"

#include <stdexcept>
#include <string>

namespace msfrs::edge {

constexpr int64_t PerByte = 8 * 1'000'000'000LL; ///< 10^-9 bits per byte

Policer::Policer(const TokenRate &r): rate_(r.rate), full_(r.depth * PerByte), tokens_(full_)
{
    if (r.rate < 1 || r.rate > TokenRate::MaxRate)
        throw std::invalid_argument("a rate of " + std::to_string(r.rate) + " bit/s; allowed are 1 to " +
                                    std::to_string(TokenRate::MaxRate));
    if (r.depth < TokenRate::MinDepth || r.depth > TokenRate::MaxDepth)
        throw std::invalid_argument("a depth of " + std::to_string(r.depth) + " bytes; allowed are " +
                                    std::to_string(TokenRate::MinDepth) + " to " +
                                    std::to_string(TokenRate::MaxDepth));
}

bool Policer::admit(const int64_t length, const int64_t now)
{
    if (now > last_) {
        // Compared as times, not as tokens: the product with a long time would overflow.
        const uint64_t passed = static_cast<uint64_t>(now) - static_cast<uint64_t>(last_);
        const int64_t missing = full_ - tokens_;
        if (passed > static_cast<uint64_t>(missing / rate_))
            tokens_ = full_;
        else
            tokens_ += rate_ * static_cast<int64_t>(passed);
    }
    last_ = now;
    if (length > tokens_ / PerByte)
        return false;
    tokens_ -= length * PerByte;
    return true;
}

} // namespace msfrs::edge
