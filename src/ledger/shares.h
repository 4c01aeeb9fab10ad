// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The shares of the link that parties may have. Pure.
#pragma once

#include <vector>

namespace msfrs::ledger {

/// What one party wants.
struct Want {
    double demand = 0;  ///< its weight, >= 0, finite; 0: it gets only capacity that the others do not use
    double most = 0;    ///< the rate that it can use, >= 0, in the unit of the capacity; infinite: any
};

/// Max-min fair by demand, and work conserving: no party gets more than `most`. A party that gets less than that gets
/// at least as much for its demand as any other. Parties without a demand get equal parts of the rest.
/// \param capacity >= 0, finite
/// \returns a share for each; they sum to the capacity, or to the total wanted if that is less
std::vector<double> Shares(const std::vector<Want> &, double capacity);

} // namespace msfrs::ledger
