// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/name_book.h"
#include "satellites/page/name_files.h"
#include "support/directory.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace msfrs::test {
namespace {

using namespace page;

TEST(NameBook, LinesOfTheAdministrator)
{
    NameBook book;
    book.addNames("# people\n10.0.0.5\tAnna's laptop  # upstairs\nAA:bb:cc:00:11:22 Printer\n10.0.0.5 again\n10.0.0.6\n"
                  "2001:db8:0:7::/64 Flat 7\r\n\nlogin Bj\xC3\xB6rn\n10.0.0.7 \xFF\n10.0.0.8 a\x01" "b\n10.0.0.9 " +
                  std::string(64, 'x'));
    EXPECT_EQ(book.of("10.0.0.5"), "Anna's laptop");
    EXPECT_EQ(book.of("aa:bb:cc:00:11:22"), "Printer");
    EXPECT_EQ(book.of("2001:db8:0:7::/64"), "Flat 7");
    EXPECT_EQ(book.of("login"), "Bj\xC3\xB6rn");
    for (const auto *const none : {"10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9", "", "#"})
        EXPECT_EQ(book.of(none), "") << none;
}

TEST(NameBook, LeasesOfDnsmasq)
{
    NameBook book;
    book.addLeases("1700000000 AA:bb:cc:00:11:22 10.0.0.5 annas-laptop 01:aa\n"
                   "1700000000 aa:bb:cc:00:11:23 10.0.0.6 * *\n1700000000 aa:bb:cc:00:11:24 10.0.0.7 <b>x</b> *\n"
                   "duid 00:01\n1700000000 7 2001:db8::5 phone 00:01\n1700000000\n");
    EXPECT_EQ(book.of("10.0.0.5"), "annas-laptop");
    EXPECT_EQ(book.of("aa:bb:cc:00:11:22"), "annas-laptop") << "users may be hardware addresses";
    EXPECT_EQ(book.hardwareOf("10.0.0.5"), "aa:bb:cc:00:11:22");
    EXPECT_EQ(book.of("10.0.0.6") + book.of("10.0.0.7"), "") << "no name, and none that is accepted";
    EXPECT_EQ(book.of("2001:db8::5"), "phone");
    book.addNames("10.0.0.5 Anna");
    EXPECT_EQ(book.of("10.0.0.5"), "Anna") << "the administrator's name is preferred";
}

TEST(NameBook, LeasesOfDhcpd)
{
    NameBook book;
    const auto lease = [](const std::string &name, const std::string &state) {
        return "lease 10.0.0.5 {\n  starts 4 2026/11/26 10:00:00;\n  binding state " + state +
            ";\n  next binding state free;\n  hardware ethernet AA:bb:cc:00:11:22;\n"
            "  client-hostname \"" + name + "\";\n}\n";
    };
    book.addLeases("# The format of this file\n" + lease("old", "active") + lease("new", "active"));
    EXPECT_EQ(book.of("10.0.0.5"), "new");
    EXPECT_EQ(book.hardwareOf("10.0.0.5"), "aa:bb:cc:00:11:22");
    book.addLeases(lease("new", "free"));
    EXPECT_EQ(book.of("10.0.0.5"), "");
    book.addLeases(lease("a\\\"b", "active") + "}\nclient-hostname \"\nhardware\nlease");
    EXPECT_EQ(book.of("10.0.0.5"), "");
}

TEST(NameBook, ItIsBounded)
{
    NameBook book;
    std::string names, leases;
    for (size_t n = 0; n < NameBook::Most + 10; ++n) {
        names += "u" + std::to_string(n) + " n\n";
        leases += "1 m" + std::to_string(n) + " a" + std::to_string(n) + " n\n";
    }
    book.addNames(names);
    book.addLeases(leases);
    EXPECT_EQ(book.of("u" + std::to_string(NameBook::Most - 1)), "n");
    EXPECT_EQ(book.of("u" + std::to_string(NameBook::Most)), "");
    EXPECT_EQ(book.of("a" + std::to_string(NameBook::Most)), "");
}

TEST(NameFiles, AreReadAgainWhenTheyChange)
{
    const Directory directory;
    const auto path = directory.path() + "/names", leases = directory.path() + "/leases";
    std::vector<std::string> said;
    const auto log = [&](const std::string &text) { said.push_back(text); };
    NameFiles files({{path, false}, {leases, true}});
    ASSERT_EQ(mkfifo(leases.c_str(), 0600), 0);
    EXPECT_TRUE(files.changed(log));
    ASSERT_EQ(said.size(), 2u);
    EXPECT_EQ(said[0], "names " + path + ": No such file or directory; its users have addresses only");
    EXPECT_NE(said[1].find("expected a regular file"), std::string::npos) << "and it does not wait for a writer";
    EXPECT_FALSE(files.changed(log));
    EXPECT_EQ(said.size(), 2u) << "once";
    std::ofstream(path) << "10.0.0.5 Anna\n";
    auto book = files.changed(log);
    ASSERT_TRUE(book);
    EXPECT_EQ(book->of("10.0.0.5"), "Anna");
    std::ofstream(path) << "10.0.0.5 Beate\n";
    book = files.changed(log);
    ASSERT_TRUE(book);
    EXPECT_EQ(book->of("10.0.0.5"), "Beate");
}

} // namespace
} // namespace msfrs::test
