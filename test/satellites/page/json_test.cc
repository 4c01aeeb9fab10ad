// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/json.h"
#include "satellites/page/utf8.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

TEST(Json, NothingEndsAString)
{
    EXPECT_EQ(JsonString("</script><b a='x'>&\"\\"),
              R"("\u003c/script\u003e\u003cb a=\u0027x\u0027\u003e\u0026\u0022\u005c")");
    EXPECT_EQ(JsonString(std::string("\0\n\x1f\x7f", 4)), R"("\u0000\u000a\u001f\u007f")");
    EXPECT_EQ(JsonString("\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\x93"), "\"\\u2028\\u2029\xE2\x80\x93\"");
}

TEST(Json, AllIsUtf8)
{
    EXPECT_EQ(JsonString("\xC3\xA4\xF0\x9F\x98\x80"), "\"\xC3\xA4\xF0\x9F\x98\x80\"");
    // Truncated, overlong, a surrogate, beyond Unicode, a byte that is no start of a character.
    EXPECT_EQ(JsonString("a\xC3"), "\"a\\ufffd\"");
    EXPECT_EQ(JsonString("\xE2\x80"), "\"\\ufffd\\ufffd\"");
    EXPECT_EQ(JsonString("\xC0\xAF"), "\"\\ufffd\\ufffd\"");
    EXPECT_FALSE(IsUtf8("\xED\xA0\x80"));
    EXPECT_FALSE(IsUtf8("\xF4\x90\x80\x80"));
    EXPECT_FALSE(IsUtf8("\xFF"));
    EXPECT_EQ(Utf8(0x20AC), "\xE2\x82\xAC");
    EXPECT_EQ(Utf8(0x1F600), "\xF0\x9F\x98\x80");
    EXPECT_EQ(Utf8(0xD800), "\xEF\xBF\xBD");
    EXPECT_EQ(Utf8(0x110000), "\xEF\xBF\xBD");
}

TEST(Json, Structure)
{
    Json json;
    json.object().key("a").array().number(1.5).number(NAN).number(std::optional<double>()).end(']');
    json.key("b").object().end('}').key("c").boolean(true).key("d").raw("[1]").key("e").whole(-7).end('}');
    EXPECT_EQ(json.take(), R"({"a":[1.5,null,null],"b":{},"c":true,"d":[1],"e":-7})");
}

} // namespace
} // namespace msfrs::test
