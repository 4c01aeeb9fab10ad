// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Basic forwarding: the work that RFC 1812 requires of a router for every packet, except route selection, which the
/// kernel has done. Checks version, lengths and header checksum, and decrements the TTL (RFC 1141) or hop limit.
#include "satellites/middlebox/function.h"

namespace msfrs::middlebox {

namespace {

class Forward : public Function {
public:
    Span process(const FunctionInput &in) override
    {
        const auto packet = in.packet;
        const bool v4 = in.key.family == Family::V4;
        if (v4 ? !soundHeader4(packet) : packet.length < 40u + word(packet.data + 4)) {
            ++malformed_;
            return {nullptr, 0};
        }
        const size_t ttl = v4 ? 8 : 7;
        if (packet.data[ttl] <= 1) {
            ++expired_;
            return {nullptr, 0};
        }
        copy_.assign(packet.begin(), packet.end());
        --copy_[ttl];
        if (v4) { // the TTL is the high byte of its word: the checksum increases by the same amount
            unsigned sum = word(&copy_[10]) + 0x100u;
            sum += sum >> 16;
            copy_[10] = static_cast<uint8_t>(sum >> 8);
            copy_[11] = static_cast<uint8_t>(sum);
        }
        ++forwarded_;
        bytes_ += packet.length;
        return {copy_.data(), copy_.size()};
    }

    std::vector<FunctionCount> counts() const override
    {
        return {{"forwarded_packets", forwarded_},
                {"forwarded_bytes", bytes_},
                {"expired_packets", expired_},
                {"malformed_packets", malformed_}};
    }

private:
    static unsigned word(const uint8_t *const p) { return static_cast<unsigned>(p[0] << 8 | p[1]); }

    static bool soundHeader4(const Span packet)
    {
        const size_t header = 4u * (packet.data[0] & 0xf), total = word(packet.data + 2);
        if (total < header || total > packet.length)
            return false;
        unsigned sum = 0;
        for (size_t i = 0; i < header; i += 2)
            sum += word(packet.data + i);
        return (sum & 0xffff) + (sum >> 16) == 0xffff; // at most 30 words: a single carry
    }

    std::vector<uint8_t> copy_;
    uint64_t forwarded_ = 0, bytes_ = 0, expired_ = 0, malformed_ = 0;
};

} // namespace

std::unique_ptr<Function> MakeForward(const FunctionOptions &) { return std::make_unique<Forward>(); }

} // namespace msfrs::middlebox
