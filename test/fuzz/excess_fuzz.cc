// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A line of a report at msfrs_excess. It is refused with a printable reason, or has an address and bytes within the
/// range, and is the same when they are written again.
#include "msfrs/ExcessLine.h"
#include "require.h"

#include <arpa/inet.h>

namespace {

std::string Written(const msfrs::squid::ExcessLine &line)
{
    char text[INET6_ADDRSTRLEN] = "-";
    if (const auto four = std::get_if<in_addr>(&line.receiver))
        inet_ntop(AF_INET, four, text, sizeof(text));
    else if (const auto six = std::get_if<in6_addr>(&line.receiver))
        inet_ntop(AF_INET6, six, text, sizeof(text));
    return std::string(text) + " " + std::to_string(line.bytes);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using msfrs::squid::ExcessLine;
    ExcessLine line;
    const auto why = line.parse({reinterpret_cast<const char *>(data), size});
    if (!why.empty()) {
        Require(line.receiver.index() == 0 && line.bytes == 0 && why.size() < 100);
        for (const char c : why)
            Require(c >= ' ' && c <= '~');
        return 0;
    }
    Require(line.bytes >= 0 && line.bytes <= ExcessLine::MostBytes);
    ExcessLine again;
    Require(again.parse(Written(line)).empty() && Written(again) == Written(line));
    return 0;
}
