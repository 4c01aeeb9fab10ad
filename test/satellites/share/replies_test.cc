// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/replies.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace share;

struct Exchanged {
    bool complete = false;
    std::vector<std::optional<std::string>> messages;
    std::string failure;
};

/// \param piece bytes that arrive at a time
Exchanged Read(const std::vector<Command> &commands, const std::string &text, const size_t piece = 1)
{
    Replies replies(1000);
    for (const auto command : commands)
        replies.expect(command);
    for (size_t at = 0; at < text.size() && replies.failure().empty(); at += piece)
        replies.feed(std::string_view(text).substr(at, piece));
    return {replies.complete(), replies.take(), replies.failure()};
}

using M = std::vector<std::optional<std::string>>;

TEST(ShareReplies, OfAnExchange)
{
    for (const size_t piece : {1, 7, 1000}) {
        const auto read = Read({Command::Auth, Command::Select, Command::Fetch, Command::Fetch, Command::Leave},
                               "+OK\r\n+OK\r\n$4\r\na\r\nb\r\n$0\r\n\r\n+OK\r\n", piece);
        EXPECT_EQ(read.failure, "");
        EXPECT_TRUE(read.complete);
        EXPECT_EQ(read.messages, (M{"a\r\nb", std::nullopt}));
    }
}

TEST(ShareReplies, AKeyOfAnotherTypeSpoilsNoOther)
{
    const auto read = Read({Command::Fetch, Command::Fetch, Command::Leave},
                           "-WRONGTYPE Operation against a key\r\n$1\r\nx\r\n+OK\r\n");
    EXPECT_TRUE(read.complete);
    EXPECT_EQ(read.messages, (M{"another type", "x"}));
}

TEST(ShareReplies, ThePasswordIsNotShown)
{
    EXPECT_EQ(Read({Command::Auth}, "-WRONGPASS invalid username-password pair\r\n").failure,
              "refuses user or password: WRONGPASS");
    EXPECT_EQ(Read({Command::Auth}, "-ERR unknown command 'AUTH', with args beginning with: 'secret'\r\n").failure,
              "refuses user or password: ERR");
}

TEST(ShareReplies, WhatIsNoAnswer)
{
    EXPECT_EQ(Read({Command::Leave}, "-NOAUTH Authentication required.\r\n").failure,
              "refuses SET: NOAUTH Authentication required.");
    EXPECT_EQ(Read({Command::Leave}, "-OOM \x1b[2J\r\n").failure, "refuses SET: OOM ?[2J");
    EXPECT_EQ(Read({Command::Leave}, ":1\r\n").failure, "sends a reply of the wrong type to SET");
    EXPECT_EQ(Read({Command::Fetch}, "+OK\r\n").failure, "sends a reply of the wrong type to GETRANGE");
    EXPECT_EQ(Read({Command::Fetch}, "$-1\r\n").failure, "sends a reply of the wrong type to GETRANGE");
    EXPECT_EQ(Read({Command::Fetch}, "HTTP/1.1 400 Bad Request\r\n").failure,
              "sends an invalid reply");
    EXPECT_EQ(Read({}, "+OK\r\n").failure, "sends an unrequested reply");
}

TEST(ShareReplies, AreBounded)
{
    EXPECT_EQ(Read({Command::Fetch}, "*1000000000\r\n").failure, "sends an invalid reply");
    EXPECT_EQ(Read({Command::Fetch}, "$500000000\r\n" + std::string(2000, 'x'), 100).failure,
              "sends a reply of more than 1000 bytes");
}

TEST(ShareReplies, CommandsMayHoldAnyBytes)
{
    EXPECT_EQ(Format({"SET", std::string("a\r\n\0", 4)}), std::string("*2\r\n$3\r\nSET\r\n$4\r\na\r\n\0\r\n", 23));
}

} // namespace
} // namespace msfrs::test
