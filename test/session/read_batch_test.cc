// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/read_batch.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

TEST(ReadBatch, BeginsWhereItIsWorthwhileAndEnoughIsToCome)
{
    ReadBatch batch;
    batch.prepare(100'000, false);
    EXPECT_EQ(batch.lowWater(), 1);
    batch.prepare(4095, true);
    EXPECT_EQ(batch.lowWater(), 1);
    batch.prepare(-1, true); // not known
    EXPECT_EQ(batch.lowWater(), 1);
    batch.prepare(4096, true);
    EXPECT_EQ(batch.lowWater(), 4096);
}

TEST(ReadBatch, ReadsToTheEndAtOnceAndLeavesTheNextResponseAlone)
{
    ReadBatch batch;
    batch.prepare(5000, true);
    batch.noteRead(4096);
    batch.prepare(904, false);
    EXPECT_EQ(batch.lowWater(), 904);
    batch.noteRead(904);
    EXPECT_EQ(batch.lowWater(), 1);
}

TEST(ReadBatch, GivesUpAfterACheckWithoutAReadUntilItIsStopped)
{
    ReadBatch batch;
    batch.prepare(100'000, true);
    batch.check(); // it has just begun
    EXPECT_EQ(batch.lowWater(), 4096);
    batch.check();
    EXPECT_EQ(batch.lowWater(), 1);
    batch.prepare(100'000, true);
    EXPECT_EQ(batch.lowWater(), 1) << "the server has been silent";
    batch.stop();
    batch.prepare(100'000, true);
    EXPECT_EQ(batch.lowWater(), 4096);
}

} // namespace
} // namespace msfrs
