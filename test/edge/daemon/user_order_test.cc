// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/packet_path.h"

#include <deque>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace edge;

/// A user's queue in an engine: turns in order of arrival, each with a packet as its host.
class UserOrderTest : public ::testing::Test {
protected:
    /// A packet of 1500 bytes. \returns its number
    uint32_t arrive(const uint16_t port, const uint64_t user = 7)
    {
        auto &h = packets.emplace_back();
        h.id = static_cast<uint32_t>(packets.size());
        h.traits.owner.user = user;
        h.traits.key.sourcePort = port;
        auto &item = items.emplace_back();
        item.host = &h;
        turns.push_back(&item);
        order.queued(item, h, 1500);
        return h.id;
    }
    Held &host(const msfrs_item &item) { return *static_cast<Held *>(item.host); }
    uint32_t go()
    {
        auto &first = host(*turns.front());
        turns.pop_front();
        return order.next(first).id;
    }
    std::vector<uint32_t> goAll()
    {
        std::vector<uint32_t> gone;
        while (!turns.empty())
            gone.push_back(go());
        return gone;
    }

    UserOrder order;
    std::deque<Held> packets;
    std::deque<msfrs_item> items;
    std::deque<msfrs_item *> turns;
};

TEST_F(UserOrderTest, WhatAConnectionBeginsWithGoesFirst)
{
    for (int n = 0; n < 15; ++n)
        arrive(1); // 11 of them are its first 16 KB
    arrive(2);
    arrive(1);
    arrive(2);
    EXPECT_EQ(goAll(), (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 18, 12, 13, 14, 15, 17}));
}

TEST_F(UserOrderTest, ABeginningEndsWhenNothingWaits)
{
    for (int n = 0; n < 12; ++n)
        arrive(1);
    for (int n = 0; n < 11; ++n)
        go();
    arrive(1); // 12 is still queued, and keeps its place
    EXPECT_EQ(goAll(), (std::vector<uint32_t>{12, 13}));
    for (int n = 0; n < 12; ++n)
        arrive(2);
    arrive(1); // starts again
    EXPECT_EQ(goAll().at(11), 26u);
}

TEST_F(UserOrderTest, WhatIsLostIsOfTheRest)
{
    for (int n = 0; n < 14; ++n)
        arrive(1);
    auto &first = host(*turns.front());
    turns.pop_front();
    EXPECT_EQ(order.lost(first, false).id, 12u) << "by an AQM, at the head";
    auto &last = host(*turns.back());
    turns.pop_back();
    EXPECT_EQ(order.lost(last, true).id, 14u) << "by a full buffer";
    EXPECT_EQ(goAll(), (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13}));
    arrive(2);
    auto &only = host(*turns.front());
    turns.pop_front();
    EXPECT_EQ(order.lost(only, false).id, 15u) << "where nothing else is there";
}

TEST_F(UserOrderTest, ABeginningOvershootsOnce)
{
    for (int n = 0; n < 14; ++n)
        arrive(1);
    arrive(2);
    const auto overshoots = [this](const int64_t most) {
        auto &first = host(*turns.front());
        turns.pop_front();
        return order.overshoots(order.next(first), most);
    };
    EXPECT_FALSE(overshoots(13 * 1500)) << "as much as may wait";
    EXPECT_TRUE(overshoots(12 * 1500 - 1));
    EXPECT_FALSE(overshoots(1500)) << "it was told";
    goAll();
    arrive(1);
    arrive(1);
    EXPECT_TRUE(overshoots(1499)) << "a beginning anew";
    EXPECT_FALSE(overshoots(0)) << "none waits behind the last";
    arrive(3, 0);
    arrive(3, 0);
    EXPECT_FALSE(overshoots(0)) << "for nobody inside";
}

TEST_F(UserOrderTest, UsersAreNotConcerned)
{
    for (int n = 0; n < 12; ++n)
        arrive(1, 7);
    arrive(2, 8);
    arrive(3, 0); // for no user inside
    arrive(4, 0);
    const auto gone = goAll();
    EXPECT_EQ(gone.at(12), 13u);
    EXPECT_EQ(gone.at(13), 14u);
    EXPECT_EQ(gone.at(14), 15u);
}

} // namespace
} // namespace msfrs::test
