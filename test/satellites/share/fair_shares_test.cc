// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/dues.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace share;

constexpr double Rate = 8e6; // a megabyte a second

TEST(Dues, ArePartsOfTheWindowByDemand)
{
    Dues dues(2);
    const auto due = dues.places({{1, 4, 9, 0}, {3, 4, 9, 0}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 2, 1e-9);
    EXPECT_NEAR(due[1], 6, 1e-9);
}

TEST(Dues, WhatOneDoesNotWantIsForTheOther)
{
    Dues dues(2);
    const auto due = dues.places({{1, 1, 0, 0}, {1, 4, 9, 0}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 1, 1e-9);
    EXPECT_NEAR(due[1], 7, 1e-9);
}

/// Places of the first gateway bring twice the bytes: its servers are near. Corrected, both have equal bytes.
TEST(Dues, BytesAreSharedAndNotPlaces)
{
    Dues dues(2);
    double had[2] = {0, 0}, places[2] = {4, 4};
    for (int n = 0; n < 3000; ++n) { // 300 s
        const double sum = 2 * places[0] + places[1];
        const double bytes[2] = {1e5 * 2 * places[0] / sum, 1e5 * places[1] / sum};
        const auto due = dues.places({{1, places[0], 100, bytes[0]}, {1, places[1], 100, bytes[1]}}, 8, Rate, 0.1);
        for (int g = 0; g < 2; ++g) {
            places[g] = due[static_cast<size_t>(g)];
            had[g] += n >= 1000 ? bytes[g] : 0;
        }
        EXPECT_NEAR(places[0] + places[1], 8, 1e-9);
    }
    EXPECT_NEAR(had[0] / had[1], 1, 0.02);
}

TEST(Dues, WhoWasAloneOwesNothing)
{
    Dues dues(2);
    for (int n = 0; n < 100; ++n)
        dues.places({{1, 8, 100, 1e5}, {1, 0, 0, 0}}, 8, Rate, 0.1);
    EXPECT_EQ(dues.balance(0), 0);
    const auto due = dues.places({{1, 8, 100, 1e5}, {1, 0, 100, 1e5}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 4, 1e-9);
}

/// Whatever is told of bytes, what a gateway is due moves by half at most; and that is forgotten.
TEST(Dues, TheCorrectionIsBounded)
{
    Dues dues(2);
    const auto due = dues.places({{1, 4, 100, 1e15}, {1, 4, 100, 0}}, 8, Rate, 0.1);
    EXPECT_NEAR(due[0], 2, 1e-9);
    EXPECT_NEAR(due[1], 6, 1e-9);
    EXPECT_NEAR(dues.places({{1, 4, 0, 0}, {1, 4, 100, 0}}, 8, Rate, 1200)[0], 4, 1e-3);
    EXPECT_NEAR(dues.balance(0), 0, 100);
}

} // namespace
} // namespace msfrs::test
