// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Means over the seeds of simulated runs: a single seed says little about a law.
#pragma once

#include "sim/access/run.h"

namespace msfrs::test {

struct Means {
    double utilisation = 0;             ///< fraction of C
    double queueMean = 0, queueP95 = 0; ///< s
    double gold = 0, silver = 0;        ///< bytes per user of the first two classes, ratio to those of the third
};

/// Means over seeds 1 to `seeds`.
inline Means MeansOf(sim::access::RunParams params, const uint64_t seeds)
{
    Means means;
    const auto n = static_cast<double>(seeds);
    for (params.seed = 1; params.seed <= seeds; ++params.seed) {
        const auto result = sim::access::Simulate(params);
        means.utilisation += result.utilisation / n;
        means.queueMean += result.queueMean / n;
        means.queueP95 += result.queueP95 / n;
        means.gold += result.perUser[0] / result.perUser[2] / n;
        means.silver += result.perUser[1] / result.perUser[2] / n;
    }
    return means;
}

} // namespace msfrs::test
