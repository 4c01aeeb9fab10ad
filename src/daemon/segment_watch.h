// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Keeps the segment of a name mapped. It may be created after this program starts, and anew at each start of Squid.
#pragma once

#include "ledger/mapping.h"

#include <memory>
#include <string>

namespace msfrs {

class SegmentWatch {
public:
    static constexpr int64_t Every = 500'000'000; ///< ns between two calls of look()

    explicit SegmentWatch(std::string name): name_(std::move(name)) {}

    enum class Change { None, Gone, Other };
    /// Checks whether the name denotes another segment than before. After Gone and Other the former one is still
    /// mapped until change() is called. \returns Gone also if the segment cannot be used: see why()
    Change look();
    /// Switches to the segment that look() has found. \returns nullptr if there is none
    ledger::Segment *change();

    bool mapped() const { return now_ != nullptr; }
    /// The reason, in one sentence, why there is none; empty: there is one.
    const std::string &why() const { return why_; }

private:
    std::string name_, why_ = "was not looked for yet";
    std::unique_ptr<ledger::Mapping> now_, next_;
};

} // namespace msfrs
