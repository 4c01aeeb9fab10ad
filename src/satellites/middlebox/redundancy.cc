// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Redundancy elimination: parts of a payload that were seen before are replaced by references to their position.
///
/// Paper: Spring, Wetherall, "A protocol-independent technique for eliminating redundant network traffic", SIGCOMM
/// 2000, figure 5. A fingerprint is taken of every window of 64 bytes; one in 64 represents the payload. A known
/// representative leads to a position in the cache, from which the match is extended in both directions as far as
/// possible. Then the payload enters the cache, which is a ring, and its representatives enter the index.
///
/// Deviations from the paper: the fingerprint is a rolling polynomial modulo 2^64 at a random point, not Rabin's over
/// GF(2): it needs one multiplication per byte, and without the point nobody can choose payloads that all collide. The
/// index is not cleaned when the ring overwrites an entry's target: bytes are compared for a match, and the peer's ring
/// has the same bytes.
///
/// Output format, after the IP header: LITERAL bytes MATCH position LITERAL bytes ... LITERAL bytes; LITERAL and MATCH
/// are lengths in 32 bits, as is the position in the ring, least significant byte first. The peer reassembles the
/// payload and writes it to its own ring by the same rule: at the end of the previous one, or at the beginning if it
/// does not fit before the end.
#include "satellites/middlebox/function.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace msfrs::middlebox {

namespace {

constexpr size_t Window = 64;
constexpr int SampleBits = 6; ///< one window in 2^SampleBits represents the payload

class Redundancy : public Function {
public:
    explicit Redundancy(const FunctionOptions &options): multiplier_(options.random() | 1)
    {
        if (options.cache < FunctionOptions::MinCache || options.cache > FunctionOptions::MaxCache)
            throw std::invalid_argument("redundancy: cache=" + std::to_string(options.cache) + ": allowed are " +
                                        std::to_string(FunctionOptions::MinCache) + " to " +
                                        std::to_string(FunctionOptions::MaxCache) + " bytes");
        ring_.resize(options.cache);
        size_t places = 1;
        while (places < options.cache >> (SampleBits - 1)) // twice as many as representatives in the ring
            places *= 2;
        index_.resize(places);
        uint64_t power = 1; // multiplier^Window: the factor of the byte that leaves
        for (size_t i = 0; i < Window; ++i)
            power *= multiplier_;
        for (uint64_t byte = 0; byte < 256; ++byte)
            leaving_[byte] = (byte + 1) * power;
    }

    Span process(const FunctionInput &in) override
    {
        const auto payload = in.payload();
        ++packets_;
        bytes_ += payload.length;
        out_.assign(in.packet.data, in.packet.data + in.payloadAt());
        if (payload.length > ring_.size()) {
            writeLiteral(payload);
            return {out_.data(), out_.size()};
        }
        encode(payload);
        remember(payload);
        return {out_.data(), out_.size()};
    }

    std::vector<FunctionCount> counts() const override
    {
        return {{"inspected_packets", packets_},
                {"inspected_bytes", bytes_},
                {"redundant_bytes", redundant_},
                {"redundant_stretches", stretches_}};
    }

private:
    struct Place {
        uint32_t tag = 0;
        uint32_t position = 0;
    };
    struct Representative {
        uint64_t fingerprint;
        size_t at; ///< start of its window in the payload
    };

    Place &placeOf(const uint64_t fingerprint) { return index_[fingerprint & (index_.size() - 1)]; }
    static uint32_t tagOf(const uint64_t fingerprint) { return static_cast<uint32_t>(fingerprint >> 26); }

    void encode(const Span payload)
    {
        const auto *const p = payload.data;
        size_t literal = 0; // everything before it has been written
        uint64_t h = 0;
        representatives_.clear();
        for (size_t end = 1; end <= payload.length; ++end) {
            h = h * multiplier_ + p[end - 1] + 1;
            if (end < Window)
                continue;
            if (end > Window)
                h -= leaving_[p[end - 1 - Window]];
            if (h >> (64 - SampleBits) != 0) // the high bits: they depend on every byte
                continue;
            const size_t at = end - Window;
            representatives_.push_back({h, at});
            const auto place = placeOf(h);
            if (at >= literal && place.tag == tagOf(h) && place.position + Window <= ring_.size() &&
                std::memcmp(p + at, &ring_[place.position], Window) == 0)
                literal = writeMatch(payload, literal, at, place.position);
        }
        writeLiteral({p + literal, payload.length - literal});
    }

    /// \returns where the match ends in the payload
    size_t writeMatch(const Span payload, const size_t literal, size_t at, size_t position)
    {
        size_t end = at + Window, ringEnd = position + Window;
        while (at > literal && position > 0 && payload.data[at - 1] == ring_[position - 1])
            --at, --position;
        while (end < payload.length && ringEnd < ring_.size() && payload.data[end] == ring_[ringEnd])
            ++end, ++ringEnd;
        writeLiteral({payload.data + literal, at - literal});
        writeNumber(end - at);
        writeNumber(position);
        redundant_ += end - at;
        ++stretches_;
        return end;
    }

    void writeLiteral(const Span bytes)
    {
        writeNumber(bytes.length);
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }

    void writeNumber(const size_t n)
    {
        for (int shift = 0; shift < 32; shift += 8)
            out_.push_back(static_cast<uint8_t>(n >> shift));
    }

    void remember(const Span payload)
    {
        if (payload.length > ring_.size() - next_)
            next_ = 0;
        std::copy(payload.begin(), payload.end(), ring_.begin() + static_cast<std::ptrdiff_t>(next_));
        for (const auto &r : representatives_)
            placeOf(r.fingerprint) = {tagOf(r.fingerprint), static_cast<uint32_t>(next_ + r.at)};
        next_ += payload.length;
    }

    uint64_t multiplier_;
    uint64_t leaving_[256];
    std::vector<uint8_t> ring_, out_;
    std::vector<Place> index_;
    std::vector<Representative> representatives_; ///< of the current packet
    size_t next_ = 0;
    uint64_t packets_ = 0, bytes_ = 0, redundant_ = 0, stretches_ = 0;
};

} // namespace

std::unique_ptr<Function> MakeRedundancy(const FunctionOptions &options)
{
    return std::make_unique<Redundancy>(options);
}

} // namespace msfrs::middlebox
