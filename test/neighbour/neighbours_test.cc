// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The copy of the kernel's neighbour table, from raw messages of rtnetlink, whole and damaged.
#include "neighbour/neighbours.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <random>
#include <sys/socket.h>

namespace msfrs {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr MacAddress Phone{2, 0, 0x5e, 0x10, 0, 1}, Laptop{2, 0, 0x5e, 0x10, 0, 2};
const Bytes PhoneBytes(Phone.begin(), Phone.end()), LaptopBytes(Laptop.begin(), Laptop.end());
const Bytes Address4{10, 20, 1, 7};
constexpr HostAddress Host4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 20, 1, 7};

HostAddress Host6(const uint8_t last)
{
    HostAddress host{0x20, 1, 0xd, 0xb8};
    host.back() = last;
    return host;
}

Bytes Bytes6(const uint8_t last)
{
    const auto host = Host6(last);
    return {host.begin(), host.end()};
}

template <class T>
void Append(Bytes &to, const T &value)
{
    const auto from = reinterpret_cast<const uint8_t *>(&value);
    to.insert(to.end(), from, from + sizeof(value));
}

void Attribute(Bytes &to, const unsigned short type, const Bytes &value)
{
    Append(to, rtattr{static_cast<unsigned short>(sizeof(rtattr) + value.size()), type});
    to.insert(to.end(), value.begin(), value.end());
    to.resize((to.size() + 3) & ~size_t{3});
}

Bytes Message(const uint16_t type, const Bytes &body)
{
    Bytes made;
    Append(made, nlmsghdr{static_cast<uint32_t>(sizeof(nlmsghdr) + body.size()), type, 0, 0, 0});
    made.insert(made.end(), body.begin(), body.end());
    return made;
}

struct Given {
    Bytes address, mac;
    uint16_t state = NUD_REACHABLE;
    uint16_t type = RTM_NEWNEIGH;
    uint8_t flags = 0;
    int interface = 3;
    uint8_t family = 0; ///< 0: that of the address
};

Bytes Neighbour(const Given &given)
{
    ndmsg header{};
    header.ndm_family = given.family ? given.family : given.address.size() == 4 ? AF_INET : AF_INET6;
    header.ndm_ifindex = given.interface;
    header.ndm_state = given.state;
    header.ndm_flags = given.flags;
    Bytes body;
    Append(body, header);
    Attribute(body, NDA_DST, given.address);
    if (!given.mac.empty())
        Attribute(body, NDA_LLADDR, given.mac);
    Attribute(body, NDA_CACHEINFO, Bytes(16));
    return Message(given.type, body);
}

Bytes operator+(Bytes a, const Bytes &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

const Bytes Done = Message(NLMSG_DONE, Bytes(4)), Refused = Message(NLMSG_ERROR, Bytes{0xf0, 0xff, 0xff, 0xff});

NeighbourTable::Outcome Apply(NeighbourTable &table, const Bytes &datagram)
{
    return table.apply(datagram.data(), datagram.size());
}

TEST(NeighbourTable, OneDeviceWithAddressesOfBothFamilies)
{
    NeighbourTable table;
    const auto outcome = Apply(table, Neighbour({Address4, PhoneBytes}) + Neighbour({Bytes6(1), PhoneBytes, NUD_STALE}) +
                                          Neighbour({Bytes6(2), PhoneBytes, NUD_DELAY}) +
                                          Neighbour({Bytes6(3), LaptopBytes, NUD_PERMANENT}) + Done);
    EXPECT_TRUE(outcome.done);
    EXPECT_FALSE(outcome.failed);
    EXPECT_EQ(table.find(Host4), Phone);
    EXPECT_EQ(table.find(Host6(1)), Phone);
    EXPECT_EQ(table.find(Host6(2)), Phone);
    EXPECT_EQ(table.find(Host6(3)), Laptop);
    EXPECT_EQ(table.find(Host6(4)), std::nullopt);
    EXPECT_EQ(TextOf(Phone), "02:00:5e:10:00:01");
}

TEST(NeighbourTable, AnAddressMovesToAnotherDeviceAndGoes)
{
    NeighbourTable table;
    Apply(table, Neighbour({Address4, PhoneBytes}));
    Apply(table, Neighbour({Address4, LaptopBytes}));
    EXPECT_EQ(table.find(Host4), Laptop);
    Given other{Address4, LaptopBytes, NUD_STALE, RTM_DELNEIGH};
    other.interface = 4;
    Apply(table, Neighbour(other));
    EXPECT_EQ(table.find(Host4), Laptop) << "of another interface";
    Apply(table, Neighbour({Address4, {}, NUD_FAILED}));
    EXPECT_EQ(table.find(Host4), std::nullopt);
    Apply(table, Neighbour({Address4, PhoneBytes}));
    Apply(table, Neighbour({Address4, PhoneBytes, NUD_STALE, RTM_DELNEIGH}));
    EXPECT_EQ(table.size(), 0U);
}

TEST(NeighbourTable, WhatIsNoHostWithAHardwareAddress)
{
    NeighbourTable table;
    const Given none[] = {
        {Address4, {}, NUD_INCOMPLETE},
        {Address4, PhoneBytes, NUD_INCOMPLETE},
        {Address4, PhoneBytes, NUD_FAILED},
        {Address4, Bytes(6), NUD_NOARP},                               // a tunnel
        {Bytes6(1), {0x33, 0x33, 0, 0, 0, 1}, NUD_NOARP},              // multicast
        {Address4, Bytes(6, 0xff), NUD_NOARP},                         // broadcast
        {Address4, Bytes(20, 2)},                                      // InfiniBand
        {Address4, PhoneBytes, NUD_PERMANENT, RTM_NEWNEIGH, NTF_PROXY}, // this machine answers for it
        {PhoneBytes, PhoneBytes, NUD_REACHABLE, RTM_NEWNEIGH, 0, 3, AF_BRIDGE},
        {Address4, PhoneBytes, NUD_REACHABLE, RTM_NEWNEIGH, 0, 3, AF_INET6},
        {Bytes6(1), PhoneBytes, NUD_REACHABLE, RTM_NEWNEIGH, 0, 3, AF_INET},
        {Address4, PhoneBytes, NUD_REACHABLE, RTM_NEWLINK},
    };
    for (const auto &given : none)
        Apply(table, Neighbour(given));
    EXPECT_EQ(table.size(), 0U);
}

TEST(NeighbourTable, IsBounded)
{
    NeighbourTable table;
    Bytes address(16);
    for (size_t n = 0; n < NeighbourTable::Most + 10; ++n) {
        memcpy(address.data(), &n, sizeof(n));
        Apply(table, Neighbour({address, PhoneBytes}));
    }
    EXPECT_EQ(table.size(), NeighbourTable::Most);
    memset(address.data(), 0, address.size());
    Apply(table, Neighbour({address, LaptopBytes}));
    EXPECT_EQ(table.find(HostAddress{}), Laptop) << "known ones still change";
}

TEST(NeighbourTable, AnyDamageIsSurvived)
{
    const auto whole = Neighbour({Bytes6(1), PhoneBytes}) + Neighbour({Address4, LaptopBytes}) + Done;
    for (size_t size = 0; size <= whole.size(); ++size) {
        const Bytes cut(whole.begin(), whole.begin() + ssize_t(size)); // of its own, for the sanitizer
        NeighbourTable table;
        Apply(table, cut);
        EXPECT_LE(table.size(), 2U);
    }
    std::mt19937 random(7);
    for (auto round = 0; round < 20'000; ++round) {
        auto damaged = whole;
        for (auto n = 0; n < 4; ++n)
            damaged[random() % damaged.size()] = uint8_t(random());
        NeighbourTable table;
        Apply(table, damaged);
        EXPECT_LE(table.size(), 2U);
    }
}

/// A kernel whose datagrams are given; an empty one stands for ENOBUFS.
struct Script : NeighbourSource {
    struct State {
        std::deque<Bytes> waiting;
        std::deque<Bytes> dump; ///< the datagrams of the next dump
        int dumps = 0;
        bool refuses = false;
    };

    explicit Script(State &state): state_(state) {}

    bool dump() override
    {
        ++state_.dumps;
        state_.waiting.insert(state_.waiting.end(), state_.dump.begin(), state_.dump.end());
        return !state_.refuses;
    }

    ssize_t receive(uint8_t *const to, const size_t size) override
    {
        if (state_.waiting.empty()) {
            errno = EAGAIN;
            return -1;
        }
        const auto next = state_.waiting.front();
        state_.waiting.pop_front();
        if (next.empty()) {
            errno = ENOBUFS;
            return -1;
        }
        memcpy(to, next.data(), std::min(size, next.size()));
        return ssize_t(next.size());
    }

private:
    State &state_;
};

struct Keeping : testing::Test {
    Script::State kernel;
    Neighbours neighbours{std::make_unique<Script>(kernel)};
};

TEST_F(Keeping, OneDumpThenNotifications)
{
    kernel.dump = {Neighbour({Address4, PhoneBytes}), Neighbour({Bytes6(1), PhoneBytes}) + Done};
    EXPECT_EQ(neighbours.find(Host6(1)), Phone);
    EXPECT_EQ(neighbours.find(Host6(2)), std::nullopt) << "not there yet: the user is the address";
    kernel.waiting = {Neighbour({Bytes6(2), PhoneBytes})};
    EXPECT_EQ(neighbours.find(Host6(2)), Phone);
    kernel.waiting = {Neighbour({Bytes6(1), {}, NUD_FAILED})};
    EXPECT_EQ(neighbours.find(Host6(1)), std::nullopt);
    EXPECT_EQ(neighbours.find(Host4), Phone);
    EXPECT_EQ(kernel.dumps, 1);
}

TEST_F(Keeping, LostNotificationsAreMadeUpForByADump)
{
    kernel.dump = {Neighbour({Address4, PhoneBytes}) + Done};
    EXPECT_EQ(neighbours.find(Host4), Phone);
    kernel.dump = {Neighbour({Bytes6(1), LaptopBytes}) + Done};
    kernel.waiting = {Neighbour({Bytes6(2), PhoneBytes}), {}, Neighbour({Bytes6(3), PhoneBytes})};
    EXPECT_EQ(neighbours.find(Host6(1)), Laptop);
    EXPECT_EQ(neighbours.find(Host4), std::nullopt) << "whose end was among those lost";
    EXPECT_EQ(kernel.dumps, 2);
}

TEST_F(Keeping, LostDuringADumpOneMoreFollowsAtTheNextLookup)
{
    kernel.dump = {Neighbour({Address4, PhoneBytes}), {}, Done};
    EXPECT_EQ(neighbours.find(Host4), Phone);
    EXPECT_EQ(kernel.dumps, 1);
    kernel.dump = {Neighbour({Address4, LaptopBytes}) + Done};
    EXPECT_EQ(neighbours.find(Host4), Laptop);
    EXPECT_EQ(neighbours.find(Host4), Laptop);
    EXPECT_EQ(kernel.dumps, 2);
}

TEST_F(Keeping, ADumpThatIsRefusedIsRequestedAgain)
{
    kernel.refuses = true;
    EXPECT_EQ(neighbours.find(Host4), std::nullopt);
    kernel.refuses = false;
    kernel.dump = {Refused};
    EXPECT_EQ(neighbours.find(Host4), std::nullopt);
    kernel.dump = {Neighbour({Address4, PhoneBytes}) + Done};
    EXPECT_EQ(neighbours.find(Host4), Phone);
    EXPECT_EQ(kernel.dumps, 3);
}

TEST_F(Keeping, ADatagramThatIsTooLongCountsAsLost)
{
    kernel.dump = {Bytes(40'000), Done};
    EXPECT_EQ(neighbours.find(Host4), std::nullopt);
    kernel.dump = {Neighbour({Address4, PhoneBytes}) + Done};
    EXPECT_EQ(neighbours.find(Host4), Phone);
}

TEST(KernelNeighbours, AnswersWithoutPrivileges)
{
    Neighbours neighbours(KernelNeighbours());
    EXPECT_EQ(neighbours.find(HostAddress{}), std::nullopt);
}

} // namespace
} // namespace msfrs
