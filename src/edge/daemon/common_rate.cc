// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/common_rate.h"

namespace msfrs::edge {

void CommonRate::Share::tell(const size_t cls, const uint32_t flows)
{
    if (told_.size() <= cls)
        told_.resize(cls + 1);
    if (told_[cls] != flows) // what wraps around in between is right in the end
        common_.flows_[cls].fetch_add(flows - told_[cls], std::memory_order_relaxed);
    told_[cls] = flows;
}

void CommonRate::Share::clear()
{
    for (size_t c = 0; c < told_.size(); ++c)
        tell(c, 0);
}

double CommonRate::Share::of(const std::vector<double> &weights) const
{
    double mine = 0, all = 0;
    for (size_t c = 0; c < weights.size(); ++c) {
        const auto flows = common_.flows_[c].load(std::memory_order_relaxed);
        if (flows == 0)
            continue;
        mine += c < told_.size() ? weights[c] * told_[c] / flows : 0;
        all += weights[c];
    }
    return all > 0 && mine > 0 ? mine / all : 1;
}

} // namespace msfrs::edge
