// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/pacer.h"

#include <stdexcept>
#include <string>

namespace msfrs::edge {

constexpr int64_t PerByte = 8 * 1'000'000'000LL; ///< bits of a byte times nanoseconds of a second

void Pacer::configure(const int64_t rate, const int64_t burst)
{
    if (rate < 0 || rate > MostRate)
        throw std::invalid_argument("a rate of " + std::to_string(rate) + " bit/s; allowed are 1 to " +
                                    std::to_string(MostRate) + ", or 0: no limit");
    rate_ = rate;
    burst_ = burst;
    carry_ = 0;
    // In floating point: for a large burst at a low rate the product exceeds 64 bits.
    const double time = rate ? static_cast<double>(burst_) * PerByte / static_cast<double>(rate) : 0;
    constexpr double Year = 3e16; // ns
    burstTime_ = static_cast<int64_t>(time < Year ? time : Year);
}

void Pacer::sent(const int64_t bytes, const int64_t now)
{
    if (rate_ == 0)
        return;
    // The credit of the burst may exceed that for lateness.
    raise(now - (burstTime_ > MostLate ? burstTime_ : MostLate));
    const int64_t owed = bytes * PerByte + carry_;
    next_ += owed / rate_;
    carry_ = owed % rate_;
}

} // namespace msfrs::edge
