// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/segment.h"

namespace msfrs::ledger {

namespace {

uint64_t Hash(uint64_t hash, const std::string_view text)
{
    for (const unsigned char c : text)
        hash = (hash ^ c) * 0x100000001b3;
    return hash;
}

constexpr uint64_t Begin = 0xcbf29ce484222325;

/// Makes the low bits, by which a user is found, depend on all others, and avoids the reserved values.
uint64_t Mixed(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
    return hash > OtherClasses ? hash : hash + 2;
}

} // namespace

uint64_t ClassKey(const std::string_view cls) { return Mixed(Hash(Begin, cls)); }

uint64_t UserKey(const std::string_view cls, const std::string_view user)
{
    return Mixed(Hash(Hash(Begin, cls) * 0x100000001b3, user)); // as if a zero byte separated them
}

void FormatSegment(void *const memory)
{
    auto &header = static_cast<Segment *>(memory)->header;
    header.version.store(Version, std::memory_order_relaxed);
    header.size.store(sizeof(Segment), std::memory_order_relaxed);
    header.magic.store(Magic, std::memory_order_release);
}

Segment *OpenSegment(void *const memory, const size_t size, std::string &why)
{
    const auto fail = [&why](const std::string &text) {
        why = text;
        return nullptr;
    };
    if (size < sizeof(Header))
        return fail("it has " + std::to_string(size) + " bytes, less than its header");
    const auto segment = static_cast<Segment *>(memory);
    const auto &header = segment->header;
    if (header.magic.load(std::memory_order_acquire) != Magic)
        return fail("it is not a ledger of msfrs");
    const auto version = header.version.load(), length = header.size.load();
    if (version != Version) {
        return fail("it has version " + std::to_string(version) + ", and this program knows version " +
                    std::to_string(Version));
    }
    if (length != sizeof(Segment) || size < sizeof(Segment)) {
        return fail("its header states " + std::to_string(length) + " bytes, and it has " + std::to_string(size) +
                    ", where version " + std::to_string(Version) + " has " + std::to_string(sizeof(Segment)));
    }
    return segment;
}

} // namespace msfrs::ledger
