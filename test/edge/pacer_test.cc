// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/pacer.h"

#include "support/host.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using edge::Pacer;

/// Bytes sent in `time` if packets of `length` are always queued and the timer is up to `late` late, seeded.
int64_t Sent(Pacer &pacer, const int64_t length, const msfrs_time time, const msfrs_time late)
{
    Random random(1);
    int64_t bytes = 0;
    msfrs_time now = 0;
    while (now < time) {
        while (pacer.ready(now)) {
            pacer.sent(length, now);
            bytes += length;
        }
        now = pacer.next() + random.between(0, late);
    }
    return bytes;
}

class Rates : public testing::TestWithParam<int64_t> {};

TEST_P(Rates, HoldWithinAPercentWhateverThePacketsAndTheTimer)
{
    for (const int64_t length : {64, 1400, 65535}) {
        for (const msfrs_time late : {msfrs_time(0), 100 * Us, 5 * Ms}) {
            Pacer pacer(GetParam(), 0, 0);
            pacer.wake(0);
            // The time of a thousand of these packets, and at least a second.
            const auto time = std::max<msfrs_time>(Second, 1000 * length * 8 * Second / GetParam());
            const double bits = 8.0 * static_cast<double>(Sent(pacer, length, time, late));
            const double wanted = static_cast<double>(GetParam()) * static_cast<double>(time) * 1e-9;
            EXPECT_NEAR(bits / wanted, 1, 0.01) << length << " bytes, up to " << late << " ns late";
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Pacer, Rates, testing::Values(1'000'000, 3'000'001, 10'000'000, 100'000'000, 1'000'000'000));

TEST(Pacer, CarriesFractions)
{
    Pacer pacer(3'000'000'000, 0, 0); // a byte takes 2 2/3 ns
    for (int n = 0; n < 3; ++n)
        pacer.sent(1, 0);
    EXPECT_EQ(pacer.next(), 8);
}

TEST(Pacer, IdlenessIsWorthNoMoreThanTheBurst)
{
    Pacer pacer(8'000'000, 3000, 0); // a byte a microsecond
    pacer.wake(10 * Second);
    int64_t sent = 0;
    for (; pacer.ready(10 * Second); sent += 1000)
        pacer.sent(1000, 10 * Second);
    EXPECT_EQ(sent, 4000); // the burst, and the packet that may be sent without debt
    EXPECT_EQ(pacer.next(), 10 * Second + 1000 * Us);
}

TEST(Pacer, OwesForWhatWentBeforeItWasIdle)
{
    Pacer pacer(8'000'000, 0, 0);
    pacer.wake(0);
    pacer.sent(65535, 0);
    pacer.wake(1 * Ms);
    EXPECT_FALSE(pacer.ready(1 * Ms));
    EXPECT_EQ(pacer.next(), 65535 * Us);
}

TEST(Pacer, AProcessThatWasStoppedDoesNotFlood)
{
    Pacer pacer(8'000'000, 0, 0);
    pacer.wake(0);
    pacer.sent(1000, 0);
    int64_t sent = 0;
    for (; pacer.ready(30 * Second); sent += 1000)
        pacer.sent(1000, 30 * Second);
    EXPECT_EQ(sent, Pacer::MostLate / Us + 1000);
}

TEST(Pacer, ChangesItsRateUnderWay)
{
    Pacer pacer(8'000'000, 0, 0);
    pacer.sent(1000, 0);
    pacer.setRate(80'000'000);
    EXPECT_EQ(pacer.next(), 1 * Ms);
    pacer.sent(1000, 1 * Ms);
    EXPECT_EQ(pacer.next(), 1 * Ms + 100 * Us);
}

TEST(Pacer, WithoutARateEverythingMayGo)
{
    Pacer pacer(0, 0, 5);
    pacer.sent(100'000'000, 5);
    EXPECT_TRUE(pacer.ready(5));
}

TEST(Pacer, RefusesARateOutOfRange)
{
    EXPECT_THROW(Pacer(-1, 0, 0), std::invalid_argument);
    EXPECT_THROW(Pacer(Pacer::MostRate + 1, 0, 0), std::invalid_argument);
}

} // namespace
} // namespace msfrs::test
