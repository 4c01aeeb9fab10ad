// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The delay line: the first line of the input is a packet in hexadecimal digits, the rest is a table. The table is
/// refused with its source and line, or always gives the same entry for a packet with addresses.
#include "satellites/delayline/delay_table.h"
#include "require.h"

#include <sstream>

namespace {

/// Any character that is not a digit counts as one, so that every line is a packet.
std::vector<uint8_t> Packet(const std::string &digits)
{
    const auto value = [](const char c) { return c >= '0' && c <= '9' ? c - '0' : (c - 'a' + 10) & 15; };
    std::vector<uint8_t> packet;
    for (size_t n = 0; n + 1 < digits.size(); n += 2)
        packet.push_back(static_cast<uint8_t>(value(digits[n]) << 4 | value(digits[n + 1])));
    return packet;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs;
    using namespace delayline;
    std::istringstream text(std::string(reinterpret_cast<const char *>(data), size));
    std::string line;
    std::getline(text, line);
    const auto packet = Packet(line);
    const auto ends = ParseEndpoints(packet.data(), packet.size());

    DelayTable table;
    try {
        table.read(text, "table");
    } catch (const RuleError &error) {
        Require(std::string(error.what()).find("table:") != std::string::npos);
        return 0;
    }
    Require(table.size() <= DelayTable::MaxEntries);
    for (size_t n = 0; n < table.size(); ++n)
        Require(table.delay(n) >= 0 && table.delay(n) <= DelayTable::MaxDelay);
    if (ends) {
        const auto entry = table.find(*ends);
        Require(!entry || *entry < table.size());
        Require(entry == table.find(*ends));
    }
    return 0;
}
