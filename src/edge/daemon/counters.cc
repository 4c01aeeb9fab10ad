// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/counters.h"

#include <cmath>
#include <numeric>

namespace msfrs::edge {

void WaitCounts::add(const int64_t wait)
{
    size_t bucket = 0;
    for (auto us = static_cast<uint64_t>(wait) / 1000; us > 0 && bucket + 1 < Buckets; us >>= 1)
        ++bucket;
    ++of[bucket];
    sum += static_cast<uint64_t>(wait);
}

uint64_t WaitCounts::count() const { return std::accumulate(of.begin(), of.end(), uint64_t{0}); }

double WaitCounts::upperEnd(const size_t bucket) { return std::ldexp(1e-6, static_cast<int>(bucket)); }

double WaitCounts::quantile(const double q) const
{
    const auto wanted = std::ceil(q * static_cast<double>(count()));
    double seen = 0;
    for (size_t b = 0; b < Buckets && wanted > 0; ++b) {
        seen += static_cast<double>(of[b]);
        if (seen >= wanted)
            return upperEnd(b);
    }
    return 0;
}

WaitCounts &WaitCounts::operator+=(const WaitCounts &w)
{
    for (size_t b = 0; b < Buckets; ++b)
        of[b] += w.of[b];
    sum += w.sum;
    return *this;
}

ClassCounts &ClassCounts::operator+=(const ClassCounts &c)
{
    for (const auto volume : {&ClassCounts::offered, &ClassCounts::policed, &ClassCounts::dropped, &ClassCounts::passed,
                              &ClassCounts::marked, &ClassCounts::queued})
        this->*volume += c.*volume;
    waits += c.waits;
    return *this;
}

} // namespace msfrs::edge
