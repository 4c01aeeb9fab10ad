// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What parties may have of the link. Pure.
#ifndef MSFRS_LEDGER_SHARES_H
#define MSFRS_LEDGER_SHARES_H

#include <vector>

namespace msfrs::ledger {

/// One who wants a part.
struct Want {
    double demand = 0;  ///< its weight, >= 0, finite; 0: it gets what others leave
    double most = 0;    ///< what it can use, >= 0, in the unit of the capacity; infinite: anything
};

/// Max-min fair by demand, and work conserving: nobody gets more than `most`; nobody who gets less than that gets less
/// for its demand than another. What those with a demand leave goes to those without one, in equal parts.
/// \param capacity >= 0, finite
/// \returns a share for each; they sum to the capacity, or to what all want if that is less
std::vector<double> Shares(const std::vector<Want> &, double capacity);

} // namespace msfrs::ledger

#endif
