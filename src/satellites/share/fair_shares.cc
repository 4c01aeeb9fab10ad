// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/fair_shares.h"

#include "ledger/shares.h"

#include <algorithm>
#include <cmath>

namespace msfrs::share {

std::vector<double> FairShares::places(const std::vector<Claim> &claims, const double limit, const double rate,
                                       const double seconds)
{
    double demand = 0, served = 0;
    size_t waiting = 0;
    const auto contends = [](const Claim &c) { return c.waiting > 0 && c.demand > 0; };
    for (const auto &c : claims) {
        if (contends(c)) {
            ++waiting;
            demand += c.demand;
            served += c.served;
        }
    }
    std::vector<ledger::Want> wants;
    for (size_t n = 0; n < claims.size(); ++n) {
        const auto &c = claims[n];
        auto &balance = balances_[n];
        double weight = c.demand;
        balance *= std::exp(-seconds / Forget);
        if (waiting > 1 && contends(c) && rate > 0) {
            const double second = rate / 8 * c.demand / demand; // bytes of its share
            balance = std::clamp(balance + c.served - served * c.demand / demand, -second, second);
            weight *= 1 - Most * balance / second;
        }
        wants.push_back({weight, c.waiting > 0 ? limit : c.places});
    }
    return ledger::Shares(wants, limit);
}

} // namespace msfrs::share
