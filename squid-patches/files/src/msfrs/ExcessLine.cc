/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "msfrs/ExcessLine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <arpa/inet.h>

namespace msfrs::squid
{

namespace
{

/// \returns whether the text is an address, or - for none
bool
ParseReceiver(const std::string_view text, decltype(ExcessLine::receiver) &receiver)
{
    if (text == "-") {
        receiver = {};
        return true;
    }
    std::array<char, INET6_ADDRSTRLEN> buf;
    if (text.size() >= buf.size())
        return false;
    *std::copy(text.begin(), text.end(), buf.begin()) = '\0';
    in_addr four;
    in6_addr six;
    if (inet_pton(AF_INET, buf.data(), &four) == 1)
        receiver = four;
    else if (inet_pton(AF_INET6, buf.data(), &six) == 1)
        receiver = six;
    else
        return false;
    return true;
}

} // namespace

std::string
ExcessLine::parse(const std::string_view line)
{
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos)
        return "it is not of the form ADDRESS BYTES";

    const auto digits = line.substr(blank + 1);
    ExcessLine read;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), read.bytes);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || read.bytes < 0 ||
            read.bytes > MostBytes)
        return "give the bytes as a whole number from 0 to " + std::to_string(MostBytes);
    if (!ParseReceiver(line.substr(0, blank), read.receiver))
        return "give an IPv4 or IPv6 address, or - for a receiver of no class";
    *this = read;
    return {};
}

} // namespace msfrs::squid

