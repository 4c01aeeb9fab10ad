// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/service_lag.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

constexpr double Most = 60'000; ///< bytes
constexpr double Gold = 4, Bronze = 1, Both = Gold + Bronze;

struct ServiceLagTest : testing::Test {
    ServiceLag lag;
    ServiceLag::User gold, bronze;

    ServiceLagTest()
    {
        lag.setMost(Most);
        lag.serve(gold, 0, true, Gold, Both);
        lag.serve(bronze, 0, true, Bronze, Both);
    }
};

TEST_F(ServiceLagTest, IsNoneByTheWeights)
{
    lag.serve(gold, 4000, false, Gold, Both);
    lag.serve(bronze, 1000, false, Bronze, Both);
    EXPECT_NEAR(lag.bytes(gold, Gold), 0, 1e-6);
    EXPECT_NEAR(lag.bytes(bronze, Bronze), 0, 1e-6);
}

TEST_F(ServiceLagTest, IsTheBytesThatAUserIsBehindItsShare)
{
    lag.serve(gold, 3000, false, Gold, Both);
    lag.serve(bronze, 2000, false, Bronze, Both);
    EXPECT_NEAR(lag.bytes(gold, Gold), 1000, 1e-6);
    EXPECT_NEAR(lag.bytes(bronze, Bronze), -1000, 1e-6);
}

TEST_F(ServiceLagTest, IsBoundedEitherWay)
{
    lag.serve(bronze, 1e7, false, Bronze, Both);
    EXPECT_NEAR(lag.bytes(gold, Gold), Most, 1e-6);
    EXPECT_NEAR(lag.bytes(bronze, Bronze), -Most, 1e-6);
    lag.serve(gold, 1000, false, Gold, Both);
    EXPECT_NEAR(lag.bytes(gold, Gold), Most - 1000 + 1000 * Gold / Both, 1e-6)
        << "what it was once is forgotten";
}

TEST_F(ServiceLagTest, WhoBeginsIsNotBehind)
{
    lag.serve(bronze, 5000, false, Bronze, Both);
    lag.serve(gold, 1000, true, Gold, Both);
    EXPECT_NEAR(lag.bytes(gold, Gold), -1000 + 1000 * Gold / Both, 1e-6);
}

TEST_F(ServiceLagTest, WhoBeginsAnewIsAsFarAheadAsBefore)
{
    lag.serve(bronze, 5000, false, Bronze, Both);
    lag.serve(bronze, 0, true, Bronze, Both);
    EXPECT_NEAR(lag.bytes(bronze, Bronze), -5000 + 5000 * Bronze / Both, 1e-6);
}

TEST_F(ServiceLagTest, WhoIsAloneTakesFromNobody)
{
    lag.serve(bronze, 5000, false, Bronze, Both);
    lag.serve(bronze, 5000, false, Bronze, Bronze);
    EXPECT_NEAR(lag.bytes(bronze, Bronze), 0, 1e-6);
}

} // namespace
} // namespace msfrs
