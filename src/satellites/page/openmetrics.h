// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Parser for mgr:msfrs-metrics: the part of OpenMetrics 1.0 that Squid writes, without exemplars.
#pragma once

#include "satellites/page/scanner.h"

#include <vector>

namespace msfrs::page {

constexpr size_t MostSamples = 100'000;

struct Sample {
    std::string name;
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;

    /// The value of a label; empty: there is no such label.
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
/// \throws PageError a malformed line, more than MostSamples, or a truncated page
std::vector<Sample> ReadOpenMetrics(std::string_view text);

} // namespace msfrs::page
