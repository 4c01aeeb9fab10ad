// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/common_rate.h"

#include <algorithm>

namespace msfrs::edge {

namespace {

/// A class's share of the link if all are backlogged, from its weight among its siblings and its parent's share.
std::vector<double> SharesOf(const Config &config)
{
    std::vector<double> shares;
    for (const auto &c : config.classes) {
        double siblings = 0;
        for (const auto &other : config.classes)
            siblings += other.parent == c.parent ? other.weight : 0;
        const double parent = c.parent.empty() ? 1 : shares[config.classNamed(c.parent)];
        shares.push_back(parent * c.weight / siblings);
    }
    return shares;
}

} // namespace

bool SharedRate::adopt(const Schedule &schedule, msfrs_time)
{
    weights_ = SharesOf(schedule.config());
    return true;
}

int64_t SharedRate::pace(const Schedule &schedule)
{
    const auto &config = schedule.config();
    for (size_t n = 0; n < config.classes.size(); ++n) {
        if (!config.classes[n].interior)
            tell(n, schedule.classAt(n).users);
    }
    const auto rate = static_cast<double>(config.link.rate) * of(weights_);
    return config.link.rate ? std::max<int64_t>(1, static_cast<int64_t>(rate)) : 0;
}

void SharedRate::tell(const size_t cls, const uint32_t flows)
{
    if (told_.size() <= cls)
        told_.resize(cls + 1);
    if (told_[cls] != flows) // wrapping in between cancels out
        common_.flows[cls].fetch_add(flows - told_[cls], std::memory_order_relaxed);
    told_[cls] = flows;
}

void SharedRate::clear()
{
    for (size_t c = 0; c < told_.size(); ++c)
        tell(c, 0);
}

double SharedRate::of(const std::vector<double> &weights) const
{
    double mine = 0, all = 0;
    for (size_t c = 0; c < weights.size(); ++c) {
        const auto flows = common_.flows[c].load(std::memory_order_relaxed);
        if (flows == 0)
            continue;
        mine += c < told_.size() ? weights[c] * told_[c] / flows : 0;
        all += weights[c];
    }
    return all > 0 && mine > 0 ? mine / all : 1;
}

} // namespace msfrs::edge
