// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Synthetic packets, as the kernel would queue them, and recorded verdicts.
#pragma once

#include "edge/daemon/packet_path.h"

#include "support/host.h"
#include "support/plugins.h"

#include <array>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace msfrs::test {

/// Headers of an IPv4 packet, and its stated length.
struct MadePacket {
    std::array<uint8_t, 64> bytes{};
    uint32_t captured = 40, length = 1500, mark = 0;
};

struct PacketOf {
    uint8_t source = 1;       ///< 198.18.0.source
    uint8_t destination = 1;  ///< 198.19.0.destination
    uint16_t sourcePort = 1000, destinationPort = 80;
    uint8_t protocol = 17, dscp = 0, ecn = 0, tcpFlags = 0x10;
    uint32_t length = 1500, mark = 0;
};

inline MadePacket Make(const PacketOf &of)
{
    MadePacket p;
    p.length = of.length;
    p.mark = of.mark;
    auto &b = p.bytes;
    b[0] = 0x45;
    b[1] = static_cast<uint8_t>(of.dscp << 2 | of.ecn);
    b[2] = static_cast<uint8_t>(of.length >> 8);
    b[3] = static_cast<uint8_t>(of.length);
    b[8] = 64;
    b[9] = of.protocol;
    const uint8_t addresses[] = {198, 18, 0, of.source, 198, 19, 0, of.destination};
    std::copy(std::begin(addresses), std::end(addresses), &b[12]);
    b[20] = static_cast<uint8_t>(of.sourcePort >> 8);
    b[21] = static_cast<uint8_t>(of.sourcePort);
    b[22] = static_cast<uint8_t>(of.destinationPort >> 8);
    b[23] = static_cast<uint8_t>(of.destinationPort);
    b[32] = 5 << 4; // TCP: 20 bytes of header
    b[33] = of.tcpFlags;
    return p;
}

struct GivenVerdict {
    uint32_t id;
    bool pass;
    std::optional<uint32_t> mark;
};

class KeptVerdicts final : public edge::Verdicts {
public:
    void give(const uint32_t id, const bool pass, const std::optional<uint32_t> mark) override
    {
        all.push_back({id, pass, mark});
    }

    std::vector<uint32_t> passed() const
    {
        std::vector<uint32_t> ids;
        for (const auto &v : all) {
            if (v.pass)
                ids.push_back(v.id);
        }
        return ids;
    }
    size_t dropped() const { return all.size() - passed().size(); }

    std::vector<GivenVerdict> all;
};

/// A path with a given configuration, under a clock that the test advances.
class PathUnderTest {
public:
    explicit PathUnderTest(const std::string &text, std::vector<edge::Rule> rules = {}, const unsigned threads = 1):
        conditioner_(TableOf(rules), threads > 1),
        path(Compile(text, rules), &conditioner_, threads > 1 ? &common : nullptr, verdicts, 0)
    {}
    /// A path with a configuration read from a file.
    explicit PathUnderTest(const std::shared_ptr<const edge::Config> &config):
        conditioner_(TableOf(config->rules ? *config->rules : std::vector<edge::Rule>())),
        path(std::make_unique<edge::Schedule>(config, host_.engine()), &conditioner_, nullptr, verdicts, 0)
    {}

    static std::shared_ptr<edge::Config> Parse(const std::string &text)
    {
        std::istringstream in(text);
        return std::make_shared<edge::Config>(edge::ReadConfig(in, "edge.conf", PluginDir()));
    }
    /// A configuration, with rules that do not come from a file.
    std::unique_ptr<edge::Schedule> Compile(const std::string &text, const std::vector<edge::Rule> &rules = {})
    {
        auto config = Parse(text);
        if (!rules.empty())
            config->rules = std::make_shared<const std::vector<edge::Rule>>(rules);
        return std::make_unique<edge::Schedule>(config, host_.engine());
    }

    /// \returns the packet's number
    uint32_t arrive(const PacketOf &of) { return arriveAs(Make(of)); }
    uint32_t arriveAs(MadePacket p)
    {
        const edge::Arrival a{++ids_, p.mark, p.bytes.data(), p.captured, p.length};
        path.arrive(&a, 1, now);
        return ids_;
    }
    /// Continues service until `until`.
    void run(const msfrs_time until)
    {
        for (auto next = path.next(); next && *next <= until; next = path.next()) {
            now = std::max(now, *next);
            path.service(now);
        }
        now = until;
    }
    edge::ClassCounts total() const
    {
        edge::ClassCounts sum;
        for (const auto &c : path.counts())
            sum += c;
        return sum;
    }

private:
    static std::shared_ptr<const edge::RuleTable> TableOf(const std::vector<edge::Rule> &rules)
    {
        return std::make_shared<const edge::RuleTable>(rules);
    }

    Host host_;
    uint32_t ids_ = 0;

public:
    msfrs_time now = 0;
    KeptVerdicts verdicts;
    edge::CommonRate common;

private:
    edge::Conditioner conditioner_;

public:
    edge::PacketPath path;
};

} // namespace msfrs::test
