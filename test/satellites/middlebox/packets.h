// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Common parts of the functions' tests: packets in memory that ends with them, and reproducible options.
#pragma once

#include "satellites/middlebox/function.h"
#include "edge/packet.h"
#include "support/host.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace msfrs::test {

using Bytes = std::vector<uint8_t>;

/// A UDP packet of flow 0..65535 without UDP checksum. \param family the other addresses are fixed test addresses
inline Bytes Udp(const Bytes &payload, const uint16_t flow = 1, const Family family = Family::V4)
{
    const size_t header = family == Family::V4 ? 20 : 40;
    Bytes b(header + 8 + payload.size());
    const auto put = [&](const size_t at, const size_t value) {
        b[at] = static_cast<uint8_t>(value >> 8);
        b[at + 1] = static_cast<uint8_t>(value);
    };
    const uint8_t ends[] = {198, 18, 0, 1, 198, 19, 0, 1};
    if (family == Family::V4) {
        b[0] = 0x45;
        put(2, header + 8 + payload.size());
        b[8] = 64;
        b[9] = 17;
        std::copy(std::begin(ends), std::end(ends), b.begin() + 12);
        uint32_t sum = 0;
        for (size_t i = 0; i < header; i += 2)
            sum += static_cast<uint32_t>(b[i] << 8 | b[i + 1]);
        put(10, 0xffff - ((sum & 0xffff) + (sum >> 16)));
    } else {
        b[0] = 0x60;
        put(4, 8 + payload.size());
        b[6] = 17;
        b[7] = 64;
        b[8] = b[24] = 0x20;
        b[23] = 1, b[39] = 2;
    }
    put(header, flow);
    put(header + 2, 53);
    put(header + 4, 8 + payload.size());
    std::copy(payload.begin(), payload.end(), b.begin() + static_cast<long>(header + 8));
    return b;
}

inline Bytes RandomBytes(Random &random, const size_t length)
{
    Bytes b(length);
    std::generate(b.begin(), b.end(), [&] { return static_cast<uint8_t>(random.bits()); });
    return b;
}

/// Options with a random source of their own.
inline middlebox::FunctionOptions Options(const uint64_t seed = 1)
{
    middlebox::FunctionOptions options;
    options.random = [random = Random(seed)]() mutable { return random.bits(); };
    return options;
}

/// The function's output for a packet that ReadKey() can parse.
inline Bytes Process(middlebox::Function &f, const Bytes &packet)
{
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[packet.size()]); // for the address sanitizer
    std::copy(packet.begin(), packet.end(), exact.get());
    const auto key = edge::ReadKey(exact.get(), packet.size());
    const auto out = f.process({{exact.get(), packet.size()}, key.value()});
    Bytes made(out.begin(), out.end());
    if (!std::equal(packet.begin(), packet.end(), exact.get()))
        throw std::logic_error("the packet itself was changed");
    return made;
}

/// A figure of a function. \throws std::out_of_range if it has no figure with this name
inline uint64_t Count(const middlebox::Function &f, const std::string &name)
{
    for (const auto &c : f.counts()) {
        if (c.name == name)
            return c.value;
    }
    throw std::out_of_range(name);
}

} // namespace msfrs::test
