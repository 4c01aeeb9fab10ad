// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The directory of a segment: who sees packets alone asks there whose they are, and Squid answers, by its classes and
/// by the latest request of the address or, without one, by its access lists. So classes are configured once.
///
/// Lock-free. A list of classes has a revision that is odd while it changes. An address is entered by who asks; its
/// answer may be that of a moment ago, and a reader may see class and user of two answers for the time of a write.
#ifndef MSFRS_LEDGER_DIRECTORY_H
#define MSFRS_LEDGER_DIRECTORY_H

#include "ledger/segment.h"

#include <optional>
#include <vector>

namespace msfrs::ledger {

constexpr msfrs_time AskAgain = 60'000'000'000;       ///< ns after which an answer is asked for anew
constexpr msfrs_time AskSoon = 1'000'000'000;         ///< ns after which it is while there is none
constexpr msfrs_time SeenEvery = 10'000'000'000;      ///< ns between two writes of AddressEntry::seen
constexpr msfrs_time ForgetAddress = 600'000'000'000; ///< ns without traffic after which another may have the entry

struct ClassTold {
    std::string name;   ///< 1 to 32 bytes
    double weight = 1;  ///< > 0
};

/// Squid's classes.
struct ClassList {
    uint64_t revision = 0;
    std::vector<ClassTold> classes;
    size_t other = 0;   ///< the default one

    std::vector<uint64_t> keys() const;
};

/// Says which classes there are; one writer. Those beyond Directory::Classes are left out.
void TellClasses(Directory &, const std::vector<ClassTold> &, size_t other);
/// \returns nothing if nobody has told yet, if they change at this moment, or if what is there cannot be
std::optional<ClassList> ReadClasses(const Directory &);

/// 128 bits, IPv4 as ::ffff:a.b.c.d.
struct IpBits {
    uint64_t high = 0, low = 0;
};
constexpr IpBits IpBits4(const uint32_t address) { return {0, uint64_t{0xffff} << 32 | address}; }

/// Whose something is.
struct Owner {
    uint64_t cls = 0, user = 0; ///< ClassKey(), UserKey()
};

constexpr uint32_t NoAddress = UINT32_MAX;
/// \returns a place in Directory::addresses, or NoAddress
uint32_t FindAddress(const Directory &, const IpBits &);

/// For a packet: says whose the address is, and asks Squid where that is not known, or has not been said for long.
/// \returns nothing while it is not known
std::optional<Owner> OwnerOf(Directory &, const IpBits &, msfrs_time now);

/// Squid has had a request of the address: if anybody has asked for it, this is the answer.
void Requested(Directory &, const IpBits &, const Owner &, msfrs_time now);

/// The side that answers. Not copied: there is one.
class Answers {
public:
    explicit Answers(Directory &directory): directory_(directory) {}
    Answers(const Answers &) = delete;

    /// Calls ownerOf(address) for what was asked since the last call, and enters its Owner. What a request has said
    /// within ForgetAddress stays.
    template <class OwnerOf>
    void answer(const msfrs_time now, const OwnerOf &ownerOf)
    {
        for (uint32_t place; (place = next(now)) != NoAddress;) {
            const auto &entry = directory_.addresses[place];
            const IpBits address{entry.high.load(), entry.low.load()};
            tell(place, address, ownerOf(address), now);
        }
    }
    /// Answers mean something else from here on: all are given anew, by addresses alone.
    void forget() { walk_ = 0, anew_ = true; }

private:
    uint32_t next(msfrs_time now);
    void tell(uint32_t place, const IpBits &, const Owner &, msfrs_time now);

    Directory &directory_;
    uint64_t answered_ = 0;     ///< questions
    uint32_t walk_ = 0;         ///< place from which on all are looked at; Directory::Addresses: none
    bool anew_ = false;
};

} // namespace msfrs::ledger

#endif
