// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/fair_shares.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace share;

constexpr double Rate = 8e6; // a megabyte a second

TEST(FairShares, ArePartsOfTheWindowByDemand)
{
    FairShares shares(2);
    const auto due = shares.places({{1, 4, 9, 0}, {3, 4, 9, 0}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 2, 1e-9);
    EXPECT_NEAR(due[1], 6, 1e-9);
}

TEST(FairShares, WhatOneDoesNotWantIsForTheOther)
{
    FairShares shares(2);
    const auto due = shares.places({{1, 1, 0, 0}, {1, 4, 9, 0}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 1, 1e-9);
    EXPECT_NEAR(due[1], 7, 1e-9);
}

/// A slot of the first gateway carries twice the bytes, as its servers are near. Corrected, both have equal bytes.
TEST(FairShares, BytesAreSharedAndNotPlaces)
{
    FairShares shares(2);
    double had[2] = {0, 0}, places[2] = {4, 4};
    for (int n = 0; n < 3000; ++n) { // 300 s
        const double sum = 2 * places[0] + places[1];
        const double bytes[2] = {1e5 * 2 * places[0] / sum, 1e5 * places[1] / sum};
        const auto due = shares.places({{1, places[0], 100, bytes[0]}, {1, places[1], 100, bytes[1]}}, 8, Rate, 0.1);
        for (int g = 0; g < 2; ++g) {
            places[g] = due[static_cast<size_t>(g)];
            had[g] += n >= 1000 ? bytes[g] : 0;
        }
        EXPECT_NEAR(places[0] + places[1], 8, 1e-9);
    }
    EXPECT_NEAR(had[0] / had[1], 1, 0.02);
}

TEST(FairShares, WhoWasAloneOwesNothing)
{
    FairShares shares(2);
    for (int n = 0; n < 100; ++n)
        shares.places({{1, 8, 100, 1e5}, {1, 0, 0, 0}}, 8, Rate, 0.1);
    EXPECT_EQ(shares.balance(0), 0);
    const auto due = shares.places({{1, 8, 100, 1e5}, {1, 0, 100, 1e5}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 4, 1e-9);
}

/// Whatever bytes are reported, a gateway's fair share changes by at most half; and the correction decays.
TEST(FairShares, TheCorrectionIsBounded)
{
    FairShares shares(2);
    const auto due = shares.places({{1, 4, 100, 1e15}, {1, 4, 100, 0}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 2, 1e-9);
    EXPECT_NEAR(due[1], 6, 1e-9);
    EXPECT_NEAR(shares.places({{1, 4, 0, 0}, {1, 4, 100, 0}}, 8, Rate, 1200)[0], 4, 1e-3);
    EXPECT_NEAR(shares.balance(0), 0, 100);
}

} // namespace
} // namespace msfrs::test
