// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/delayline/delay_table.h"

#include <algorithm>

namespace msfrs::delayline {

std::optional<Endpoints> ParseEndpoints(const uint8_t *packet, size_t length)
{
    if (length == 0)
        return {};
    const auto version = packet[0] >> 4;
    const size_t header = version == 4 ? 20 : 40;
    const unsigned size = version == 4 ? 4 : 16;
    if ((version != 4 && version != 6) || length < header)
        return {};
    const auto *const source = packet + (version == 4 ? 12 : 8);
    return Endpoints{version == 4 ? Family::V4 : Family::V6, AddressOf(source, size), AddressOf(source + size, size)};
}

void DelayTable::add(std::string_view line, const std::string &where)
{
    const auto refuse = [&](const std::string &what) { throw RuleError(where + ": " + what); };
    const auto whole = line;
    auto word = NextWord(line);
    const auto side = word == "from" ? Side::From : word == "to" ? Side::To : Side::Either;
    if (side != Side::Either)
        word = NextWord(line);
    const auto delay = NextWord(line);
    if (delay.empty() || !NextWord(line).empty())
        refuse("\"" + Shown(whole) + "\": expected [from|to] PREFIX DELAY (for example 198.19.1.0/24 6ms)");
    if (entries_.size() == MaxEntries)
        refuse("more than " + std::to_string(MaxEntries) + " entries");
    const Entry entry{side, Field{"prefix", word, where}.prefix(),
                      Field{"delay", delay, where}.time(0, MaxDelay, "0ms to 10s")};
    const auto longer = [](const Entry &a, const Entry &b) { return a.prefix.length > b.prefix.length; };
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry, longer), entry);
}

void DelayTable::read(std::istream &in, const std::string &name)
{
    Lines lines(in, name);
    for (std::string_view line; lines.next(line);)
        add(line, lines.where());
}

std::optional<size_t> DelayTable::find(const Endpoints &ends) const
{
    for (size_t i = 0; i < entries_.size(); ++i) {
        const auto &[side, prefix, delay] = entries_[i];
        if (prefix.family == ends.family && ((side != Side::To && prefix.range.contains(ends.from)) ||
                                             (side != Side::From && prefix.range.contains(ends.to))))
            return i;
    }
    return {};
}

} // namespace msfrs::delayline
