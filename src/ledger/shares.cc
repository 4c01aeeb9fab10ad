// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/shares.h"

#include <algorithm>
#include <cassert>

namespace msfrs::ledger {

namespace {

/// Gives each party at most the rate that it can use, in ascending order of that rate by weight.
/// \returns the rest
double Fill(const std::vector<Want> &wants, std::vector<double> &shares, double left,
            const std::vector<size_t> &those, const std::vector<double> &weights)
{
    auto order = those;
    const auto level = [&](const size_t n) { return wants[n].most / weights[n]; };
    std::sort(order.begin(), order.end(), [&](const size_t a, const size_t b) { return level(a) < level(b); });
    std::vector<double> weight(order.size() + 1); // sums of all from an index on; differences would lose digits
    for (size_t place = order.size(); place > 0; --place)
        weight[place - 1] = weight[place] + weights[order[place - 1]];
    for (size_t place = 0; place < order.size(); ++place) {
        const auto n = order[place];
        shares[n] = std::min(wants[n].most, left * (weights[n] / weight[place]));
        left = std::max(0.0, left - shares[n]);
    }
    return left;
}

} // namespace

std::vector<double> Shares(const std::vector<Want> &wants, const double capacity)
{
    std::vector<double> shares(wants.size()), weights(wants.size(), 1);
    std::vector<size_t> first, rest;
    for (size_t n = 0; n < wants.size(); ++n) {
        assert(wants[n].demand >= 0 && wants[n].most >= 0);
        (wants[n].demand > 0 ? first : rest).push_back(n);
        if (wants[n].demand > 0)
            weights[n] = wants[n].demand;
    }
    Fill(wants, shares, Fill(wants, shares, capacity, first, weights), rest, weights);
    return shares;
}

} // namespace msfrs::ledger
