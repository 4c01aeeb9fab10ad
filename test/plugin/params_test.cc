// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/loader.h"
#include "support/params_table.h"

#include <gtest/gtest.h>
#include <limits>

namespace msfrs {
namespace {

using test::Table;

msfrs_plugin Plugin(const msfrs_param *const params = Table, const uint32_t n = std::size(Table))
{
    msfrs_plugin p{};
    p.name = "red";
    p.params = params;
    p.n_params = n;
    return p;
}

std::vector<msfrs_value> Values(const std::vector<Setting> &settings) { return ParseParams(Plugin(), settings); }

std::string Refusal(const std::vector<Setting> &settings, const msfrs_plugin &p = Plugin())
{
    try {
        ParseParams(p, settings);
    } catch (const ConfigError &error) {
        return error.what();
    }
    return "accepted";
}

TEST(Params, Defaults)
{
    const auto v = Values({});
    ASSERT_EQ(v.size(), std::size(Table));
    EXPECT_EQ(v[0].i, 7);
    EXPECT_EQ(v[1].d, 0.5);
    EXPECT_EQ(v[2].i, 0);
    EXPECT_EQ(v[3].i, 1);
}

TEST(Params, EveryTypeAndBothEndsOfARange)
{
    const auto v = Values({{"mode", "three"}, {"ecn", "on"}, {"share", "12.25"}, {"count", "-5"}});
    EXPECT_EQ(v[0].i, -5);
    EXPECT_EQ(v[1].d, 12.25);
    EXPECT_EQ(v[2].i, 1);
    EXPECT_EQ(v[3].i, 2);
    EXPECT_EQ(Values({{"count", "1000000"}})[0].i, 1000000);
    EXPECT_EQ(Values({{"share", "0"}})[1].d, 0);
    EXPECT_EQ(Values({{"share", "1e2"}})[1].d, 100);
    EXPECT_EQ(Values({{"mode", "one"}})[3].i, 0);
    EXPECT_EQ(Values({{"big", "9223372036854775807"}})[4].i, std::numeric_limits<int64_t>::max());
}

TEST(Params, WrongValuesAreNamedWithWhatIsAllowed)
{
    for (const char *v : {"", "x", "-6", "1000001", "7.5", "7 ", " 7", "0x7", "99999999999999999999", "1e3", "+-1"}) {
        EXPECT_EQ(Refusal({{"count", v}}), std::string("red parameter count=") + v +
                                               " is not allowed: expected a whole number from -5 to 1000000 items");
    }
    for (const char *v : {"", "x", "-0.1", "100.1", "nan", "inf", "-inf", "1e999", "5%", " 5", "0x5"}) {
        EXPECT_EQ(Refusal({{"share", v}}), std::string("red parameter share=") + v +
                                               " is not allowed: expected a number from 0 to 100 %");
    }
    for (const char *v : {"", "yes", "1", "On"}) {
        EXPECT_EQ(Refusal({{"ecn", v}}),
                  std::string("red parameter ecn=") + v + " is not allowed: expected on or off");
    }
    for (const char *v : {"", "four", "one|two", "1"}) {
        EXPECT_EQ(Refusal({{"mode", v}}),
                  std::string("red parameter mode=") + v + " is not allowed: expected one of one two three");
    }
    const auto big = Refusal({{"big", "9223372036854775808"}});
    EXPECT_EQ(big.find("red parameter big=9223372036854775808 is not allowed"), 0u) << big;
    EXPECT_EQ(Refusal({{"count", std::string("5\0x", 3)}}).find("red parameter count="), 0u) << "a NUL hides the rest";
}

TEST(Params, Twice)
{
    EXPECT_EQ(Refusal({{"count", "1"}, {"ecn", "on"}, {"count", "1"}}),
              "red parameter count is given twice; count=1 comes first");
}

TEST(Params, UnknownNamesTheKnown)
{
    EXPECT_EQ(Refusal({{"cuont", "1"}}), "red has no parameter 'cuont'; it has count, share, ecn, mode, big");
    EXPECT_EQ(Refusal({{"any", "1"}}, Plugin(nullptr, 0)), "red has no parameter 'any'; it has none");
}

TEST(Params, ABadDefaultIsThePluginsFault)
{
    const msfrs_param bad[] = {{"count", MSFRS_INT, "", "11", 0, 10, nullptr, ""}};
    EXPECT_EQ(Refusal({}, Plugin(bad, 1)), "plugin red has a bad default count=11");
    const msfrs_param none[] = {{"count", MSFRS_INT, "", nullptr, 0, 10, nullptr, ""}};
    EXPECT_EQ(Refusal({}, Plugin(none, 1)), "plugin red has a bad default count=(none)");
}

TEST(Params, ADefaultThatNobodyMayWriteSaysThatNothingWasGiven)
{
    const msfrs_param limit[] = {{"limit", MSFRS_INT, "packets", "0", 1, 10, nullptr, ""}};
    EXPECT_EQ(ParseParams(Plugin(limit, 1), {}).front().i, 0);
    EXPECT_EQ(Refusal({{"limit", "0"}}, Plugin(limit, 1)),
              "red parameter limit=0 is not allowed: expected a whole number from 1 to 10 packets");
}

TEST(Params, PrintedSettingsParseAgain)
{
    EXPECT_EQ(PrintSettings({}), "");
    EXPECT_EQ(PrintSettings({{"wake", "paper"}, {"ahead", "10"}}), "wake=paper ahead=10");
}

} // namespace
} // namespace msfrs
