// SPDX-License-Identifier: GPL-2.0-or-later
#include "delayline/delay_table.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cmath>
#include <cstring>
#include <istream>

namespace msfrs::delayline {

namespace {

[[noreturn]] void Refuse(const std::string &where, const std::string &what) { throw TableError(where + ": " + what); }

std::vector<std::string> Words(std::string_view line)
{
    std::vector<std::string> words;
    line = line.substr(0, line.find('#'));
    for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != line.npos;) {
        const auto end = std::min(line.find_first_of(" \t\r", at), line.size());
        words.emplace_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

Nanoseconds ParseDelay(const std::string &text, const std::string &where)
{
    double value = 0;
    const auto *const end = text.data() + text.size();
    const auto number = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    const std::string_view unit(number.ptr, static_cast<size_t>(end - number.ptr));
    const double scale = unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
    if (number.ec != std::errc() || scale == 0)
        Refuse(where, "delay \"" + text + "\": a number with a unit is wanted: us, ms or s (for example 12.5ms)");
    const double wanted = value * scale;
    // Written so that NaN is refused too.
    if (!(wanted >= 0 && wanted <= static_cast<double>(DelayTable::MaxDelay)))
        Refuse(where, "delay \"" + text + "\": allowed are 0ms to 10s");
    return std::llround(wanted);
}

bool BitsAfter(const Address &address, int length)
{
    for (int bit = length; bit < address.bits; ++bit)
        if (address.bytes[static_cast<size_t>(bit / 8)] & (0x80 >> (bit % 8)))
            return true;
    return false;
}

Address ParsePrefix(const std::string &text, int &length, const std::string &where)
{
    const auto slash = text.find('/');
    const std::string host = text.substr(0, slash);
    Address address;
    if (inet_pton(AF_INET, host.c_str(), address.bytes.data()) == 1)
        address.bits = 32;
    else if (inet_pton(AF_INET6, host.c_str(), address.bytes.data()) == 1)
        address.bits = 128;
    else
        Refuse(where, "prefix \"" + text + "\": not an IPv4 or IPv6 address with or without /LENGTH");
    length = address.bits;
    if (slash != text.npos) {
        const auto *const end = text.data() + text.size();
        const auto number = std::from_chars(text.data() + slash + 1, end, length);
        if (number.ec != std::errc() || number.ptr != end || length < 0 || length > address.bits)
            Refuse(where, "prefix \"" + text + "\": the length must be 0 to " + std::to_string(address.bits));
    }
    if (BitsAfter(address, length))
        Refuse(where, "prefix \"" + text + "\": has bits set beyond its length of " + std::to_string(length));
    return address;
}

} // namespace

std::optional<Endpoints> ParseEndpoints(const uint8_t *packet, size_t length)
{
    if (length == 0)
        return {};
    const auto version = packet[0] >> 4;
    const size_t header = version == 4 ? 20 : 40, size = version == 4 ? 4 : 16;
    if ((version != 4 && version != 6) || length < header)
        return {};
    const size_t source = version == 4 ? 12 : 8;
    Endpoints ends;
    ends.from.bits = ends.to.bits = static_cast<int>(size * 8);
    std::memcpy(ends.from.bytes.data(), packet + source, size);
    std::memcpy(ends.to.bytes.data(), packet + source + size, size);
    return ends;
}

void DelayTable::add(std::string_view line, const std::string &where)
{
    auto words = Words(line);
    Entry entry{Side::Either, {}, 0, 0};
    if (!words.empty() && (words[0] == "from" || words[0] == "to")) {
        entry.side = words[0] == "from" ? Side::From : Side::To;
        words.erase(words.begin());
    }
    if (words.size() != 2)
        Refuse(where, "\"" + std::string(line) +
                          "\": wanted is [from|to] PREFIX DELAY (for example 198.19.1.0/24 6ms)");
    if (entries_.size() == MaxEntries)
        Refuse(where, "more than " + std::to_string(MaxEntries) + " entries");
    entry.prefix = ParsePrefix(words[0], entry.length, where);
    entry.delay = ParseDelay(words[1], where);
    const auto shorter = [](int length, const Entry &other) { return length > other.length; };
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry.length, shorter), entry);
}

void DelayTable::read(std::istream &in, const std::string &name)
{
    std::string line;
    for (int number = 1; std::getline(in, line); ++number)
        if (!Words(line).empty())
            add(line, name + ":" + std::to_string(number));
    if (in.bad())
        Refuse(name, "cannot be read");
}

bool DelayTable::Covers(const Entry &entry, const Address &address)
{
    if (entry.prefix.bits != address.bits)
        return false;
    const auto whole = static_cast<size_t>(entry.length / 8);
    if (!std::equal(entry.prefix.bytes.begin(), entry.prefix.bytes.begin() + whole, address.bytes.begin()))
        return false;
    const int rest = entry.length % 8;
    return rest == 0 || ((entry.prefix.bytes[whole] ^ address.bytes[whole]) >> (8 - rest)) == 0;
}

std::optional<size_t> DelayTable::find(const Endpoints &ends) const
{
    for (size_t i = 0; i < entries_.size(); ++i) {
        const auto &entry = entries_[i];
        if ((entry.side != Side::To && Covers(entry, ends.from)) ||
            (entry.side != Side::From && Covers(entry, ends.to)))
            return i;
    }
    return {};
}

} // namespace msfrs::delayline
