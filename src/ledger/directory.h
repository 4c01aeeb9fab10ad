// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The directory of a segment. A party that sees only packets and has no squid.conf asks here for the class and user of
/// an address. Squid answers by the address's latest request or, without one, by its access lists.
///
/// Lock-free. A list of classes has a revision that is odd while it changes. The party that asks enters the address.
/// An answer may be slightly out of date, and during a write a reader may see class and user of two answers.
#pragma once

#include "ledger/segment.h"

#include <optional>
#include <vector>

namespace msfrs::ledger {

/// ns after which a query is repeated: a changed access list takes so long to reach an address without requests.
constexpr msfrs_time AskAgain = 60'000'000'000;
constexpr msfrs_time AskSoon = 1'000'000'000;    ///< ns instead while there is no answer; not with each packet
constexpr msfrs_time SeenEvery = 10'000'000'000; ///< ns between two writes of AddressEntry::seen, a shared cache line
/// ns without traffic after which the entry may be reused, well beyond SeenEvery; and without requests after which the
/// address alone answers again. A table that is full sooner takes no further address.
constexpr msfrs_time ForgetAddress = 600'000'000'000;

struct ClassTold {
    std::string name;   ///< 1 to 32 bytes
    double weight = 1;  ///< > 0
};

/// Squid's classes.
struct ClassList {
    uint64_t revision = 0;
    std::vector<ClassTold> classes;
    size_t other = 0;   ///< the default one
};

/// Publishes the classes; one writer. Those beyond Directory::Classes are left out.
void TellClasses(Directory &, const std::vector<ClassTold> &, size_t other);
/// \returns nothing if none were published, if they are being changed, or if they are invalid
std::optional<ClassList> ReadClasses(const Directory &);

/// 128 bits, IPv4 as ::ffff:a.b.c.d.
struct IpBits {
    uint64_t high = 0, low = 0;
};
constexpr IpBits IpBits4(const uint32_t address) { return {0, uint64_t{0xffff} << 32 | address}; }

/// The owner of an address or a packet.
struct Owner {
    uint64_t cls = 0, user = 0; ///< ClassKey(), UserKey()
};

/// \returns an index into Directory::addresses, or NoEntry
uint32_t FindAddress(const Directory &, const IpBits &);

/// The owner of a packet's address. Asks Squid if there is no answer, or only an old one.
/// \returns nothing while it is not known
std::optional<Owner> OwnerOf(Directory &, const IpBits &, msfrs_time now);

/// Squid has received a request from the address: if a party has asked for the address, this is the answer.
void Requested(Directory &, const IpBits &, const Owner &, msfrs_time now);

/// The side that answers. Not copied: there is one.
class Answers {
public:
    explicit Answers(Directory &directory): directory_(directory) {}
    Answers(const Answers &) = delete;

    /// Calls ownerOf(address) for each query since the last call, and enters its Owner. An answer by a request stays
    /// for ForgetAddress.
    template <class OwnerOf>
    void answer(const msfrs_time now, const OwnerOf &ownerOf)
    {
        for (uint32_t place; (place = next(now)) != NoEntry;) {
            const auto &entry = directory_.addresses[place];
            const IpBits address{entry.high.load(), entry.low.load()};
            tell(place, address, ownerOf(address), now);
        }
    }
    /// The meaning of answers has changed: all addresses are answered again, by the address alone.
    void forget() { walk_ = 0, anew_ = true; }

private:
    uint32_t next(msfrs_time now);
    void tell(uint32_t place, const IpBits &, const Owner &, msfrs_time now);

    Directory &directory_;
    uint64_t answered_ = 0;     ///< queries
    uint32_t walk_ = 0;         ///< index from which all entries are visited; Directory::Addresses: none
    bool anew_ = false;
};

} // namespace msfrs::ledger
