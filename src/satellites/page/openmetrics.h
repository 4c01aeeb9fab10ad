// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The page mgr:msfrs-metrics, as far as Squid writes it: OpenMetrics 1.0 without exemplars.
#ifndef MSFRS_PAGE_OPENMETRICS_H
#define MSFRS_PAGE_OPENMETRICS_H

#include "satellites/page/scanner.h"

#include <vector>

namespace msfrs::page {

constexpr size_t MostSamples = 100'000;

struct Sample {
    std::string name;
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;

    /// The value of a label; empty: it has none of that name.
    std::string_view label(std::string_view wanted) const
    {
        for (const auto &[key, text] : labels) {
            if (key == wanted)
                return text;
        }
        return {};
    }
};

/// \returns the samples whose values are finite, in the order of the page
/// \throws PageError a line that is none of the format, more than MostSamples, or a page that was cut off
std::vector<Sample> ReadOpenMetrics(std::string_view text);

} // namespace msfrs::page

#endif
