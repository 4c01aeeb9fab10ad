// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Each configuration of conf/edge under a flood: the traffic that it protects loses nothing, or no more than its file
/// states, whatever the flood consists of. Under a simulated clock, with unresponsive senders.
#include "edge/daemon/packets.h"
#include "support/audit.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cmath>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace edge;

struct Sender {
    std::string source, destination;
    uint16_t port;       ///< destination port
    uint32_t length;     ///< bytes of a packet
    double rate;         ///< bit/s
    uint16_t flows = 1;  ///< source ports, used in turn
    uint8_t protocol = 17;
};

struct Result {
    uint64_t sent = 0, lost = 0;
    std::vector<double> waits; ///< ms, of passed packets
    double rate = 0;           ///< bit/s of passed packets

    double waited(const double q)
    {
        std::sort(waits.begin(), waits.end());
        return waits.empty() ? INFINITY : waits[static_cast<size_t>(q * static_cast<double>(waits.size() - 1))];
    }
    double loss() const { return static_cast<double>(lost) / static_cast<double>(sent); }
};

class Flooded {
public:
    explicit Flooded(const std::string &name):
        config(std::make_shared<const Config>(ReadConfig(TreeFile("conf/edge/" + name), PluginDir()))),
        path_(config)
    {}

    /// Each sender sends for this time, at a constant rate and out of step with the others.
    std::vector<Result> run(const std::vector<Sender> &senders, const msfrs_time time)
    {
        std::vector<Result> results(senders.size());
        std::vector<msfrs_time> next(senders.size());
        for (size_t n = 0; n < senders.size(); ++n)
            next[n] = static_cast<msfrs_time>(n) * 7919; // ns
        std::vector<std::pair<size_t, msfrs_time>> origins{{}}; // by the packet's number: sender and time
        for (;;) {
            const auto n = static_cast<size_t>(std::min_element(next.begin(), next.end()) - next.begin());
            const auto &s = senders[n];
            if (next[n] >= time)
                break;
            step(next[n], origins, results);
            path_.arriveAs(made(s, static_cast<uint16_t>(20000 + results[n].sent % s.flows)));
            origins.emplace_back(n, next[n]);
            ++results[n].sent;
            next[n] += static_cast<msfrs_time>(8e9 * s.length / s.rate);
        }
        step(time, origins, results);
        for (size_t n = 0; n < senders.size(); ++n)
            results[n].rate = static_cast<double>(results[n].waits.size()) * 8e9 * senders[n].length /
                static_cast<double>(time);
        EXPECT_EQ(AuditLaws(path_.path.schedule().engine()), "");
        return results;
    }

    const std::shared_ptr<const Config> config;

private:
    static MadePacket made(const Sender &s, const uint16_t from)
    {
        auto p = Make({1, 1, from, s.port, s.protocol});
        p.length = s.length;
        p.bytes[2] = static_cast<uint8_t>(s.length >> 8);
        p.bytes[3] = static_cast<uint8_t>(s.length);
        inet_pton(AF_INET, s.source.c_str(), &p.bytes[12]);
        inet_pton(AF_INET, s.destination.c_str(), &p.bytes[16]);
        return p;
    }

    void step(const msfrs_time until, const std::vector<std::pair<size_t, msfrs_time>> &origins,
              std::vector<Result> &results)
    {
        const auto look = [&] {
            for (; seen_ < path_.verdicts.all.size(); ++seen_) {
                const auto &v = path_.verdicts.all[seen_];
                const auto &[sender, at] = origins[v.id];
                if (v.pass)
                    results[sender].waits.push_back(static_cast<double>(path_.now - at) * 1e-6);
                else
                    ++results[sender].lost;
            }
        };
        look();
        for (auto due = path_.path.next(); due && *due <= until; due = path_.path.next()) {
            path_.now = std::max(path_.now, *due);
            path_.path.service(path_.now);
            look();
        }
        path_.now = until;
    }

    PathUnderTest path_;
    size_t seen_ = 0;
};

/// A flood of 1.5 times a link's rate from one address: full-sized packets of one flow, of as many flows as there are
/// ports, and smallest packets.
std::vector<Sender> FloodsOf(const std::string &source, const double link)
{
    const auto flood = [&](const uint32_t length, const double load, const uint16_t flows) {
        return Sender{source, "198.19.9.9", 9, length, load * link, flows};
    };
    return {flood(1500, 1.5, 1), flood(1500, 1.5, 30000), flood(60, 3, 1), flood(60, 3, 30000)};
}

std::string Named(const Sender &s)
{
    return std::to_string(s.flows) + " flows of " + std::to_string(s.length) + " bytes";
}

TEST(Shipped, DiffservKeepsVoiceAndTheClassesThatAreWithinTheirRate)
{
    NEEDS_PLUGIN("diffserv");
    for (const auto &flood : FloodsOf("198.18.66.1", 20e6)) {
        SCOPED_TRACE(Named(flood));
        Flooded edge("diffserv.conf");
        auto had = edge.run({flood,
                             {"198.18.10.5", "198.19.0.1", 16400, 200, 1.6e6},
                             {"198.18.10.6", "198.19.0.1", 22, 600, 0.8e6, 1, 6},
                             {"198.18.20.7", "198.19.0.1", 443, 1500, 6e6, 5, 6},
                             {"198.18.20.8", "198.19.1.7", 873, 1500, 1e6, 1, 6}}, 2 * Second);
        EXPECT_GT(had[0].loss(), 0.2);
        for (size_t n = 1; n < had.size(); ++n)
            EXPECT_EQ(had[n].lost, 0u) << "sender " << n;
        EXPECT_LT(had[1].waited(1), 5) << "voice";
        EXPECT_GT(had[0].rate + had[1].rate + had[2].rate + had[3].rate + had[4].rate, 0.7 * 20e6);
    }
}

TEST(Shipped, UplinkKeepsAHostThatSendsLessThanItsShare)
{
    for (const auto &flood : FloodsOf("10.1.0.2", 9.5e6)) {
        SCOPED_TRACE(Named(flood));
        Flooded edge("uplink.conf");
        auto had = edge.run({flood, {"10.1.0.1", "198.19.0.1", 443, 1500, 3e6, 6}}, 3 * Second);
        EXPECT_GT(had[0].loss(), 0.2);
        EXPECT_EQ(had[1].lost, 0u);
        EXPECT_LT(had[1].waited(0.99), 10);
    }
}

TEST(Shipped, UplinkSharesBetweenHostsThatFlood)
{
    Flooded edge("uplink.conf");
    auto had = edge.run({{"10.1.0.1", "198.19.0.1", 443, 1500, 7e6},
                         {"10.1.0.2", "198.19.0.1", 9, 300, 30e6, 30000}}, 3 * Second);
    EXPECT_NEAR(had[0].rate * 1514 / 1500, 4.75e6, 0.05 * 4.75e6);
    EXPECT_NEAR(had[1].rate * 314 / 300, 4.75e6, 0.05 * 4.75e6);
}

TEST(Shipped, UplinkRequestsPassWhateverIsUploaded)
{
    NEEDS_PLUGIN("diffserv");
    for (const auto &flood : FloodsOf("10.1.0.2", 9.5e6)) {
        SCOPED_TRACE(Named(flood));
        Flooded edge("uplink-requests.conf");
        auto had = edge.run({flood,
                             {"10.1.0.1", "198.19.0.1", 443, 600, 0.5e6, 100, 6},
                             {"10.1.0.1", "198.19.0.1", 53, 80, 0.1e6, 500},
                             {"10.1.0.3", "198.19.0.1", 8080, 40, 0.3e6, 1, 6}}, 2 * Second); // acknowledgements
        EXPECT_GT(had[0].loss(), 0.2);
        for (size_t n = 1; n < had.size(); ++n) {
            EXPECT_EQ(had[n].lost, 0u) << "sender " << n;
            EXPECT_LT(had[n].waited(1), 4) << "sender " << n;
        }
    }
}

TEST(Shipped, SqmKeepsConnectionsThatSendLessThanTheirShare)
{
    for (const auto &flood : FloodsOf("10.1.0.2", 9.5e6)) {
        if (flood.flows > 1)
            continue; // the flood has as many connections, as the file states
        SCOPED_TRACE(Named(flood));
        Flooded edge("sqm.conf");
        auto had = edge.run({flood, {"10.1.0.1", "198.19.0.1", 443, 1500, 3e6, 1},
                             {"10.1.0.3", "198.19.0.1", 53, 80, 0.05e6, 100}}, 3 * Second);
        EXPECT_GT(had[0].loss(), 0.2);
        for (size_t n = 1; n < had.size(); ++n) {
            EXPECT_EQ(had[n].lost, 0u) << "sender " << n;
            EXPECT_LT(had[n].waited(1), 5) << "sender " << n;
        }
    }
}

TEST(Shipped, IspIsTheTailDroppingBufferOfTheTrial)
{
    for (const auto &flood : FloodsOf("198.18.66.1", 2e6)) {
        SCOPED_TRACE(Named(flood));
        Flooded edge("isp.conf");
        auto had = edge.run({flood, {"10.1.0.1", "198.19.0.1", 80, 1000, 0.5e6}}, 5 * Second);
        // Senders are not distinguished; the longest wait is for 38 packets of 1,500 bytes, and one in transmission.
        EXPECT_GT(had[1].loss(), 0.1);
        EXPECT_LT(std::max(had[0].waited(1), had[1].waited(1)), 8e3 * 39 * 1500 / 2e6);
    }
}

TEST(Shipped, ExcessLetsEverythingPassAtOnceAndSoDoesDownlinkWithoutSquid)
{
    for (const auto &flood : FloodsOf("198.18.66.1", 1e9)) {
        for (const auto name : {"excess.conf", "downlink.conf"}) {
            Flooded edge(name);
            auto had = edge.run({flood}, 20 * Ms);
            EXPECT_EQ(had[0].lost, 0u) << name;
            EXPECT_EQ(had[0].waited(1), 0) << name;
        }
    }
}

} // namespace
} // namespace msfrs::test
