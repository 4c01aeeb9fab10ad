// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/buffer_share.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

TEST(BufferShare, BeginsWithWhatLinuxOffersOfPacketsInTwoKilobytes)
{
    EXPECT_EQ(BufferShare().bufferFor(10'000), 16'000);
    EXPECT_EQ(BufferShare().bufferFor(0), 0);
}

TEST(BufferShare, IsLearnedFromConnections)
{
    BufferShare share;
    for (int n = 0; n < 10; ++n)
        share.seen(4350, 13'104); // a packet of 1448 bytes that occupies 4352
    EXPECT_NEAR(share.share(), 0.36, 0.01) << "the first ones weigh more";
    for (int n = 0; n < 2000; ++n)
        share.seen(4350, 13'104);
    EXPECT_NEAR(share.share(), 0.332, 0.001);
    EXPECT_NEAR(static_cast<double>(share.bufferFor(10'000)), 30'120, 100);
    share.seen(8230, 13'104);
    EXPECT_NEAR(share.share(), 0.628, 0.001) << "another interface: at once";
}

TEST(BufferShare, WindowsThatHaveNotGrownYetCountForLittle)
{
    BufferShare share;
    for (int n = 0; n < 400; ++n)
        share.seen(n % 10 == 0 ? 8230 : 4350, 13'104);
    EXPECT_GT(share.share(), 0.61);
    EXPECT_LE(share.share(), 0.629);
}

TEST(BufferShare, NonsenseIsBounded)
{
    BufferShare share;
    for (const auto &[window, buffer] : {std::pair<int64_t, int64_t>{0, 100}, {100, 0}, {-5, 100}, {100, -5}})
        share.seen(window, buffer);
    EXPECT_EQ(share.share(), 0.625);
    share.seen(1 << 30, 100);
    EXPECT_EQ(share.share(), 1);
    for (int n = 0; n < 5000; ++n)
        share.seen(1, int64_t(1) << 60);
    EXPECT_NEAR(share.share(), 1.0 / 16, 1e-6);
    EXPECT_GT(share.bufferFor(INT32_MAX), INT32_MAX);
}

} // namespace
} // namespace msfrs
