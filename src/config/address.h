// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Addresses of IPv4 and IPv6, and closed ranges of anything that has an order.
#pragma once

#include <cstdint>

namespace msfrs {

/// The numeric value of an address. An IPv4 address is in the low 32 bits, the rest is 0.
struct Address {
    uint64_t high = 0, low = 0;

    friend bool operator==(const Address &a, const Address &b) { return a.high == b.high && a.low == b.low; }
    friend bool operator!=(const Address &a, const Address &b) { return !(a == b); }
    friend bool operator<(const Address &a, const Address &b)
    {
        return a.high < b.high || (a.high == b.high && a.low < b.low);
    }
    friend bool operator<=(const Address &a, const Address &b) { return !(b < a); }
    /// The next address; that of the last is the first.
    Address next() const { return {high + (low == UINT64_MAX), low + 1}; }
};

/// The address whose last `n` (0 to 128) bits are set.
constexpr Address LastBits(const unsigned n)
{
    const auto ones = [](const unsigned bits) { return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1; };
    return {ones(n > 64 ? n - 64 : 0), ones(n)};
}

/// An address from its bytes in network order. \param size 4 or 16
inline Address AddressOf(const uint8_t *const bytes, const unsigned size)
{
    Address a;
    for (unsigned n = 0; n < size; ++n) {
        a.high = a.high << 8 | a.low >> 56;
        a.low = a.low << 8 | bytes[n];
    }
    return a;
}

constexpr Address LastAddress{UINT64_MAX, UINT64_MAX};
constexpr uint32_t LastAddress4 = UINT32_MAX;

enum class Family : uint8_t { V4 = 4, V6 = 6 };

/// A closed range.
template <class T>
struct Range {
    T first, last;
    bool contains(const T &x) const { return first <= x && x <= last; }
    bool covers(const Range &r) const { return first <= r.first && r.last <= last; }
};

} // namespace msfrs
