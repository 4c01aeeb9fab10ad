// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/loader.h"
#include "plugin/trust.h"
#include "support/directory.h"
#include "support/plugins.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs {
namespace {

constexpr uid_t Somebody = 4711;

/// TrustedPath()'s objection to a path; empty: none.
std::string Objection(const std::string &path, const Writers &trusted)
{
    try {
        TrustedPath(path, trusted);
        return "";
    } catch (const std::runtime_error &e) {
        return e.what();
    }
}

/// place/inner/file, which only its owner may change, with different owners of its directories.
class Trust : public ::testing::Test {
protected:
    Trust()
    {
        mode(place.path(), 0755);
        std::filesystem::create_directory(inner);
        place.add("inner/file");
        mode(inner, 0755);
        mode(file, 0644);
        trusted = WritersOf(file);
    }
    static void mode(const std::string &path, const mode_t m) { ASSERT_EQ(chmod(path.c_str(), m), 0) << path; }

    test::Directory place;
    const std::string inner = std::filesystem::canonical(place.path()) / "inner", file = inner + "/file";
    Writers trusted;
};

TEST_F(Trust, GoesToWhomEverythingOnTheWayBelongs)
{
    EXPECT_EQ(TrustedPath(file, trusted), file);
    EXPECT_TRUE(trusted.users.count(geteuid()));
    EXPECT_TRUE(trusted.users.count(0)) << "the directories above";
    EXPECT_EQ(Objection(file, {}), "/ can be changed by user root, and a process that may become root takes code from "
                                   "root alone: chown root /, or load it from where only root may write");
}

TEST_F(Trust, DoesNotGoToGroupsOrToEverybody)
{
    const std::string nobody = " can be changed by everybody, and a process that may become root takes code from root "
                               "alone: chmod o-w ";
    for (const auto &path : {file, inner}) {
        const auto usual = path == file ? 0644 : 0755;
        mode(path, usual | S_IWGRP);
        trusted.groups.erase(getegid());
        EXPECT_EQ(Objection(file, trusted).find(path + " can be changed by group "), 0u) << Objection(file, trusted);
        EXPECT_NE(Objection(file, trusted).find("chmod g-w " + path), std::string::npos);
        trusted.groups.insert(getegid());
        EXPECT_EQ(Objection(file, trusted), "");
        EXPECT_TRUE(WritersOf(file).groups.count(getegid()));
        mode(path, usual | S_IWOTH);
        EXPECT_EQ(Objection(file, trusted).find(path + nobody + path), 0u) << Objection(file, trusted);
        mode(path, usual);
    }
    trusted.groups.clear();
    mode(inner, 01777);
    EXPECT_EQ(Objection(file, trusted), "") << "sticky: only its owner may exchange the file";
}

TEST_F(Trust, IsAboutWhatASymbolicLinkLeadsTo)
{
    const auto link = place.path() + "/link";
    std::filesystem::create_symlink("inner/file", link);
    EXPECT_EQ(TrustedPath(link, trusted), file);
    mode(file, 0646);
    EXPECT_EQ(Objection(link, trusted).find(file + " can be changed by everybody"), 0u);
}

TEST_F(Trust, WantsSomethingThere)
{
    EXPECT_EQ(Objection(file + "s", trusted), file + "s: No such file or directory");
    EXPECT_THROW(WritersOf(file + "s"), std::runtime_error);
}

/// As root, who alone can change owners.
TEST_F(Trust, IsAskedForByTheLoader)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "not root: a process that is nobody else's than the file";
    const auto plugin = inner + "/fifo.so";
    std::filesystem::copy_file(test::PluginDir() + "/fifo.so", plugin);
    EXPECT_STREQ(LoadPlugin(plugin, MSFRS_SCHED, "")->ops().name, "fifo");
    const auto refusal = [&] {
        try {
            LoadPlugin(plugin, MSFRS_SCHED, "");
            return std::string("loaded");
        } catch (const ConfigError &e) {
            return std::string(e.what());
        }
    };
    for (const auto &path : {plugin, inner}) {
        ASSERT_EQ(chown(path.c_str(), Somebody, 0), 0);
        EXPECT_EQ(refusal(), "plugin " + plugin + " cannot be loaded: " + path +
                                 " can be changed by user 4711, and a process that may become root takes code from "
                                 "root alone: chown root " + path + ", or load it from where only root may write");
        ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
    }
    ASSERT_EQ(chown(plugin.c_str(), Somebody, 0), 0);
    ASSERT_EQ(seteuid(Somebody), 0);
    EXPECT_NE(refusal().find("user 4711"), std::string::npos) << "the rights may be taken back";
    ASSERT_EQ(seteuid(0), 0);
}

} // namespace
} // namespace msfrs
