// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Where the gateways of a link leave their messages for each other.
#ifndef MSFRS_SHARE_STORE_H
#define MSFRS_SHARE_STORE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace msfrs::share {

class Store {
public:
    struct Answer {
        std::string failure; ///< why there is none, in characters that a terminal can show; empty: there is one
        /// What the gateways asked about have left; nothing: nothing, or it is too old.
        std::vector<std::optional<std::string>> messages;
    };
    using Done = std::function<void(const Answer &, int64_t now)>;

    virtual ~Store() = default;
    /// Fetches what all gateways have left, this one first, then leaves `message` for the time to live. One exchange
    /// at a time. \param done called once, after this has returned, unless abandon() comes first
    virtual void exchange(const std::string &message, Done done) = 0;
    /// Forgets the exchange that is under way, and the connection with it.
    virtual void abandon() = 0;
};

} // namespace msfrs::share

#endif
