// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The store through which the gateways of a link exchange messages.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace msfrs::share {

class Store {
public:
    struct Answer {
        std::string failure; ///< reason for no answer, in characters that a terminal can show; empty: success
        /// Messages of the requested gateways; nothing: none, or expired.
        std::vector<std::optional<std::string>> messages;
    };
    using Done = std::function<void(const Answer &, int64_t now)>;

    virtual ~Store() = default;
    /// Fetches the messages of all gateways, this one first, then stores `message` for the time to live. Only one
    /// exchange at a time. \param done called once, after this has returned, unless abandon() is called first
    virtual void exchange(const std::string &message, Done done) = 0;
    /// Abandons the current exchange and its connection.
    virtual void abandon() = 0;
};

} // namespace msfrs::share
