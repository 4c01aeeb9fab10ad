/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_EXCESSLINE_H
#define SQUID_SRC_MSFRS_EXCESSLINE_H

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace msfrs::squid
{

/// A line of a report at msfrs_excess: "ADDRESS BYTES", or "- BYTES" for a receiver of no class.
struct ExcessLine {
    /// the most bytes of a line; more than any link carries between two reports
    static constexpr int64_t MostBytes = 10'000'000'000;

    std::variant<std::monostate, in_addr, in6_addr> receiver; ///< none: of no class
    int64_t bytes = 0; ///< 0 to MostBytes

    /// Parses a line without its end.
    /// \returns an empty text, or what is wrong with the line and what is allowed; then this is unchanged
    std::string parse(std::string_view line);
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_EXCESSLINE_H */

