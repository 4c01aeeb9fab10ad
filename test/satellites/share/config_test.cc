// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/config.h"

#include "support/plugins.h"
#include "support/refused.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs::test {
namespace {

using namespace share;

Config Read(const std::string &text)
{
    std::istringstream in(text);
    return ReadConfig(in, "share.conf");
}

std::string Refused(const std::string &text)
{
    return RefusalOf([&] { Read(text); });
}

const std::string Least = "link home\ngateway a share=50%\nother b\nstore host=192.0.2.1\nsegment /squid-msfrs.shm\n";

TEST(ShareConfig, Defaults)
{
    const auto c = Read(Least);
    EXPECT_EQ(c.sharing.gateway, "a");
    EXPECT_EQ(c.sharing.others, std::vector<std::string>{"b"});
    EXPECT_EQ(c.sharing.share, 0.5);
    EXPECT_EQ(c.sharing.interval, 100'000'000);
    EXPECT_EQ(c.sharing.store, "store 192.0.2.1 port 6379");
    EXPECT_EQ(c.store.port, 6379);
    EXPECT_FALSE(c.store.tls);
    EXPECT_EQ(c.store.link, "home");
    EXPECT_EQ(c.store.timeToLive, 2'000'000'000);
    EXPECT_EQ(c.segment, "/squid-msfrs.shm");
    EXPECT_EQ(c.user.value, "proxy");
    EXPECT_TRUE(c.control.value.empty());
}

TEST(ShareConfig, Everything)
{
    const auto c = Read("link home # ours\ngateway a share=20% interval=250ms\nother b\nother c\n"
                        "store host=fd00::1 port=6380 tls=on name=valkey.example ca=/ca certificate=/cert key=/key "
                        "user=msfrs password-file=/secret database=3\nsegment /s\ncontrol /run/s\nuser daemon\n");
    EXPECT_EQ(c.sharing.others.size(), 2u);
    EXPECT_EQ(c.sharing.interval, 250'000'000);
    EXPECT_TRUE(c.store.tls);
    EXPECT_EQ(c.store.name, "valkey.example");
    EXPECT_EQ(c.store.key, "/key");
    EXPECT_EQ(c.store.user, "msfrs");
    EXPECT_EQ(c.passwordFile.value, "/secret");
    EXPECT_EQ(c.store.database, 3u);
    EXPECT_EQ(c.control.value, "/run/s");
}

struct Mistake {
    const char *text, *says;
};
void PrintTo(const Mistake &m, std::ostream *out) { *out << m.text; }

class ShareMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ShareMistakes, NameLineValueAndWhatIsAllowed) { EXPECT_EQ(Refused(GetParam().text), GetParam().says); }

INSTANTIATE_TEST_SUITE_P(ShareConfig, ShareMistakes, testing::Values(
    Mistake{"", "share.conf: a line is missing: link NAME"},
    Mistake{"link a/b\n", "share.conf:1: link \"a/b\": a name has letters, digits, '-', '_' and '.', at most 32"},
    Mistake{"link a b\n", "share.conf:1: \"b\": unexpected; give link NAME"},
    Mistake{"link a\nlink b\n", "share.conf:2: \"link\": line 1 has it already"},
    Mistake{"lnk a\n", "share.conf:1: \"lnk\": unknown; a line begins with link, gateway, other, store, segment, "
                       "control and user"},
    Mistake{"gateway a\n", "share.conf:1: share is missing: this gateway's share of the link while no other "
                           "is known, 1% to 99%"},
    Mistake{"gateway a share=100%\n", "share.conf:1: share=100%: allowed are 1% to 99%"},
    Mistake{"gateway a share=0%\n", "share.conf:1: share=0%: allowed are 1% to 99%"},
    Mistake{"gateway a share=0.5\n", "share.conf:1: share=0.5: allowed are 1% to 99%"},
    Mistake{"gateway a share=5% interval=10ms\n", "share.conf:1: interval=10ms: allowed are 50ms to 500ms"},
    Mistake{"other a\nother a\n", "share.conf:2: other a: declared twice"},
    Mistake{"other a\nother b\nother c\nother d\nother e\nother f\nother g\n",
            "share.conf:7: other g: allowed are 6 gateways beside this one"},
    Mistake{"link l\ngateway a share=50%\nother a\nstore host=h\nsegment /s\n",
            "share.conf: other a: is the name of this gateway"},
    Mistake{"store port=1\n", "share.conf:1: host is missing: the host of Valkey or Redis"},
    Mistake{"store host=a,b\n", "share.conf:1: host=a,b: expected an address or the name of a host"},
    Mistake{"store host=a port=0\n", "share.conf:1: port=0: allowed are 1 to 65535"},
    Mistake{"store host=a ca=/x\n", "share.conf:1: ca=/x: requires tls=on"},
    Mistake{"store host=a tls=on key=/x\n", "share.conf:1: certificate= and key= must be given together"},
    Mistake{"store host=a user=u\n", "share.conf:1: user=u: expected a name of letters, digits, '-', '_' and '.', "
                                     "and password-file=PATH"},
    Mistake{"store host=a password-file=x\n", "share.conf:1: password-file=x: must be a path that begins with '/', at "
                                              "most 4095 characters"},
    Mistake{"store host=a database=16\n", "share.conf:1: database=16: allowed are 0 to 15"},
    Mistake{"segment s\n", "share.conf:1: segment s: must be a path that begins with '/', at most 200 characters"},
    Mistake{"segment /a/b\n", "share.conf:1: segment /a/b: expected the name of shared memory, '/' and a name"},
    Mistake{"control c\n", "share.conf:1: control c: must be a path that begins with '/', at most 107 characters"}));

class SharePassword : public testing::Test {
protected:
    SharePassword()
    {
        close(mkstemp(path_));
        config = Read(Least);
        config.passwordFile = {path_, "share.conf:4"};
    }
    ~SharePassword() override { unlink(path_); }

    std::string read(const std::string &text, const mode_t mode)
    {
        std::ofstream(path_) << text;
        chmod(path_, mode);
        return RefusalOf([&] { ReadPassword(config); });
    }

    char path_[32] = "/tmp/msfrs-password-XXXXXX";
    Config config;
};

TEST_F(SharePassword, IsTheFirstLine)
{
    EXPECT_EQ(read("secret word\nmore\n", 0640), "accepted");
    EXPECT_EQ(config.store.password, "secret word");
}

TEST_F(SharePassword, IsRefusedAndNotShown)
{
    const auto where = "share.conf:4: password-file=" + std::string(path_) + ": ";
    EXPECT_EQ(read("secret\n", 0644), where + "everybody may read it, or its group may write it: chmod 640 " + path_);
    EXPECT_EQ(read("\n", 0600), where + "its first line is the password, of 1 to 512 bytes");
    EXPECT_EQ(read(std::string(600, 's'), 0600), where + "its first line is the password, of 1 to 512 bytes");
    config.passwordFile.value = "/nowhere/at/all";
    EXPECT_EQ(RefusalOf([&] { ReadPassword(config); }),
              "share.conf:4: password-file=/nowhere/at/all: cannot be opened: No such file or directory");
    config.passwordFile.value = "/tmp";
    EXPECT_EQ(RefusalOf([&] { ReadPassword(config); }), "share.conf:4: password-file=/tmp: is not a file");
}

TEST(ShareConfig, TheShippedFileIsAccepted)
{
    const auto c = ReadConfig(TreeFile("conf/share.conf"));
    EXPECT_EQ(c.sharing.gateway, "north");
    EXPECT_EQ(c.user.value, "proxy");
}

} // namespace
} // namespace msfrs::test
