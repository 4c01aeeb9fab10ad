// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/config.h"
#include "support/directory.h"
#include "support/plugins.h"
#include "support/refused.h"

#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>

namespace msfrs::test {
namespace {

using namespace page;

Config Read(const std::string &text)
{
    std::istringstream in(text);
    return ReadConfig(in, "page.conf");
}

TEST(PageConfig, Defaults)
{
    const auto config = Read("");
    EXPECT_EQ(config.listen.text(), "127.0.0.1:3880");
    EXPECT_EQ(config.squid.text(), "127.0.0.1:3128");
    EXPECT_EQ(config.pace, 1);
    EXPECT_TRUE(config.tokenFile.empty() && config.history.empty());
}

TEST(PageConfig, Lines)
{
    const auto config = Read("listen [2001:db8::1]:80 # here\ntoken /etc/t\nhost Gate.Example 10.0.0.1\n"
                             "host [2001:db8::1]\nsquid [::1]:3128\npace 10s\nhistory /var/h\nchart /c.js\nweb /w\n"
                             "user page\n"
                             "names /etc/hosts\nleases /var/l\nusers_listen 10.0.0.1:80\n");
    EXPECT_EQ(config.listen.host(), "[2001:db8::1]");
    EXPECT_EQ(config.listen.port, 80);
    EXPECT_FALSE(config.listen.loopback);
    EXPECT_TRUE(config.squid.loopback);
    EXPECT_EQ(config.hosts, (std::vector<std::string>{"gate.example", "10.0.0.1", "[2001:db8::1]"}));
    EXPECT_EQ(config.pace, 10);
    ASSERT_TRUE(config.users && config.names.size() == 2);
    EXPECT_EQ(config.users->text(), "10.0.0.1:80") << "without a token";
    EXPECT_EQ(config.names[0].path + config.names[1].path, "/etc/hosts/var/l");
    EXPECT_TRUE(config.names[1].leases && !config.names[0].leases);
    EXPECT_EQ(config.user.value, "page");
}

TEST(PageConfig, TheOneThatIsInstalled)
{
    const auto config = ReadConfig(TreeFile("conf/page.conf"));
    EXPECT_TRUE(config.listen.loopback);
    EXPECT_EQ(config.history, "/var/lib/msfrs-page/history");
}

struct Case {
    const char *text, *refusal;
};
class PageConfigRefused : public testing::TestWithParam<Case> {};

TEST_P(PageConfigRefused, Line)
{
    const auto said = RefusalOf([] { Read(GetParam().text); });
    EXPECT_EQ(said.substr(0, 10), "page.conf:");
    EXPECT_NE(said.find(GetParam().refusal), said.npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, PageConfigRefused,
    testing::Values(Case{"lisen 1", "page.conf:1: \"lisen\": unknown; a line begins with listen, host"},
                    Case{"listen", "a value is missing; give listen ADDRESS:PORT"},
                    Case{"\nlisten localhost:80", "page.conf:2: listen localhost:80: give ADDRESS:PORT"},
                    Case{"listen 127.0.0.1", "give ADDRESS:PORT"}, Case{"listen 127.0.0.1:0", "1 to 65535"},
                    Case{"listen 127.0.0.1:65536", "1 to 65535"}, Case{"listen ::1:80", "give ADDRESS:PORT"},
                    Case{"listen 127.0.0.1:80 x", "\"x\": unexpected"},
                    Case{"listen 127.0.0.1:80\nlisten 127.0.0.1:81", "line 1 has it already"},
                    Case{"listen 10.0.0.1:80", "add a line: token FILE"},
                    Case{"listen 0.0.0.0:80\ntoken /t", "add a line: host NAME..."},
                    Case{"token t", "must be a path that begins with '/'"}, Case{"host a:80", "without port"},
                    Case{"host <b>", "host <b>: expected a name"},
                    Case{"pace 0s", "allowed are whole seconds, 1s to 60s"},
                    Case{"pace 61s", "allowed are whole seconds, 1s to 60s"},
                    Case{"pace 5", "allowed are whole seconds, 1s to 60s"},
                    Case{"user a/b", "a name has letters"}, 
                    Case{"boost /b",
                         "boost /b: everybody who sees the page could boost, so it needs a password; add a line: "
                         "token"},
                    Case{"names n", "names n: must be a path"},
                    Case{"leases", "give leases FILE"}, Case{"users_listen 10.0.0.1", "give ADDRESS:PORT"},
                    Case{"users_listen 0.0.0.0:3881", "users_listen 0.0.0.0:3881: the page does not know"},
                    Case{"users_listen 127.0.0.1:3880", "127.0.0.1:3880: the port of listen 127.0.0.1:3880"},
                    Case{"users_listen [::]:3880\nhost g", "which shows all users; give another"}));

TEST(PageToken, AFileOfOneLine)
{
    const Directory directory;
    const auto path = directory.path() + "/token";
    const auto refusal = [&](const std::string &content, const mode_t mode = 0640) {
        std::ofstream(path) << content;
        chmod(path.c_str(), mode);
        return RefusalOf([&] { ReadToken(path); });
    };
    EXPECT_EQ(refusal("0123456789abcdef\n"), "accepted");
    EXPECT_EQ(ReadToken(path), "0123456789abcdef");
    EXPECT_NE(refusal("0123456789abcdef\n", 0644).find("chmod o= "), std::string::npos);
    const std::string wrongs[] = {"", "short\n", std::string(257, 'x'), "with a blank in it", "0123456789abcde\x01"};
    for (const auto &wrong : wrongs) {
        const auto said = refusal(wrong);
        EXPECT_NE(said.find("expected a line of 16 to 256"), said.npos) << wrong;
        EXPECT_TRUE(wrong.empty() || said.find(wrong) == said.npos) << "it is never shown";
    }
    EXPECT_NE(RefusalOf([&] { ReadToken(directory.path() + "/none"); }).find("cannot be opened"), std::string::npos);
}

} // namespace
} // namespace msfrs::test
