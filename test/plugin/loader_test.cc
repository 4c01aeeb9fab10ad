// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/loader.h"
#include "support/plugins.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using test::PluginDir;
using test::TestModule;

std::string Refusal(const std::string &name, const msfrs_kind kind, const std::string &dir)
{
    try {
        LoadPlugin(name, kind, dir);
    } catch (const ConfigError &error) {
        return error.what();
    }
    return "loaded";
}

/// What the loader says of a test module, from behind its path.
std::string Refusal(const std::string &module, const msfrs_kind kind = MSFRS_AQM)
{
    const auto path = TestModule(module);
    const auto text = Refusal(path, kind, "");
    const auto begin = "plugin " + path;
    return text.compare(0, begin.size(), begin) == 0 ? text.substr(begin.size()) : text;
}

class Directory {
public:
    Directory(): path_(::testing::TempDir() + "msfrs-loader-XXXXXX")
    {
        if (!mkdtemp(path_.data()))
            throw std::runtime_error("mkdtemp failed");
    }
    ~Directory() { std::filesystem::remove_all(path_); }
    void add(const std::string &file, const std::string &content = "") { std::ofstream(path_ + "/" + file) << content; }
    const std::string &path() const { return path_; }

private:
    std::string path_;
};

TEST(Loader, LoadsWhatTheBuildHas)
{
    const auto msf = LoadPlugin("msf", MSFRS_SCHED, PluginDir());
    EXPECT_STREQ(msf->ops().name, "msf");
    EXPECT_EQ(msf->path(), PluginDir() + "/msf.so");
    EXPECT_EQ(LoadPlugin(PluginDir() + "/fifo.so", MSFRS_SCHED, "/nowhere")->ops().kind, MSFRS_SCHED);
}

TEST(Loader, LoadsAPluginTwice)
{
    const auto one = LoadPlugin("msf", MSFRS_SCHED, PluginDir());
    auto two = LoadPlugin("msf", MSFRS_SCHED, PluginDir());
    two.reset();
    EXPECT_STREQ(one->ops().name, "msf") << "unloaded with the first of two references";
}

TEST(Loader, MissingNamesWhatIsThere)
{
    Directory dir;
    for (const auto *const name : {"msf.so", "drr.so", "choke.so"})
        std::filesystem::copy_file(PluginDir() + "/" + name, dir.path() + "/" + name);
    dir.add("empty.so");
    dir.add("readme.txt");
    dir.add(".so");
    EXPECT_EQ(Refusal("wfq", MSFRS_SCHED, dir.path()),
              "no scheduler 'wfq': " + dir.path() + "/wfq.so: No such file or directory; " + dir.path() +
                  " has: drr msf")
        << "a name of the other kind would be refused next";
    EXPECT_EQ(Refusal("red", MSFRS_AQM, dir.path()),
              "no AQM 'red': " + dir.path() + "/red.so: No such file or directory; " + dir.path() + " has: choke");
}

TEST(Loader, MissingFromAnEmptyOrMissingDirectory)
{
    Directory dir;
    EXPECT_EQ(Refusal("msf", MSFRS_SCHED, dir.path()),
              "no scheduler 'msf': " + dir.path() + "/msf.so: No such file or directory; " + dir.path() +
                  " has no scheduler");
    EXPECT_EQ(Refusal("msf", MSFRS_SCHED, dir.path() + "/not"),
              "no scheduler 'msf': " + dir.path() + "/not/msf.so: No such file or directory; the plugin directory " +
                  dir.path() + "/not cannot be read: No such file or directory");
    EXPECT_EQ(Refusal("./msf.so", MSFRS_SCHED, dir.path()),
              "no scheduler './msf.so': ./msf.so: No such file or directory")
        << "a path says where it is meant to be; what the plugin directory has does not help";
}

TEST(Loader, NamesAreChecked)
{
    for (const std::string name : {"", "MSF", "msf.so", "m_f", "..", "msf\n"}) {
        EXPECT_EQ(Refusal(name, MSFRS_SCHED, PluginDir()),
                  "scheduler name '" + name +
                      "' is not allowed: lower case letters, digits and '-', or a path with '/'");
    }
    EXPECT_NE(Refusal(std::string(65, 'a'), MSFRS_SCHED, PluginDir()).find("is not allowed"), std::string::npos);
}

TEST(Loader, NoSharedObject)
{
    Directory dir;
    dir.add("text.so", "not an ELF file, and long enough that the dynamic linker reads a whole header from it");
    const auto text = Refusal("text", MSFRS_SCHED, dir.path());
    EXPECT_EQ(text.find("plugin " + dir.path() + "/text.so cannot be loaded: "), 0u) << text;
    std::filesystem::create_directory(dir.path() + "/folder.so");
    const auto folder = Refusal("folder", MSFRS_SCHED, dir.path());
    EXPECT_EQ(folder.find("plugin " + dir.path() + "/folder.so cannot be loaded: "), 0u) << folder;
}

TEST(Loader, NotAPlugin)
{
    EXPECT_EQ(Refusal("no-symbol"), " is not an msfrs plugin: it has no symbol 'msfrs_plugin'");
    EXPECT_EQ(Refusal("bad-magic"), " is not an msfrs plugin: its magic number is wrong");
}

TEST(Loader, AnotherAbi)
{
    EXPECT_EQ(Refusal("other-major"), " was built for ABI 2.0, wanted is ABI 1.0 to 1.0; rebuild it");
    EXPECT_EQ(Refusal("newer-minor"), " was built for ABI 1.1, wanted is ABI 1.0 to 1.0; rebuild it");
}

TEST(Loader, TruncatedDescriptor)
{
    EXPECT_EQ(Refusal("truncated"),
              " has a descriptor of 16 bytes, wanted are " + std::to_string(sizeof(msfrs_plugin)));
}

TEST(Loader, AnotherKind)
{
    EXPECT_EQ(Refusal("accept-all", MSFRS_SCHED), " is an AQM, wanted is a scheduler");
    EXPECT_EQ(Refusal("checker", MSFRS_AQM), " is a scheduler, wanted is an AQM");
    EXPECT_EQ(Refusal("accept-all", MSFRS_AQM), "loaded");
}

TEST(Loader, LacksAnOperation)
{
    EXPECT_EQ(Refusal("no-admit"), " lacks a name, a table or an operation that its kind must have");
}

/// A scheduler with everything that a scheduler must have.
msfrs_plugin Whole()
{
    static msfrs_sched_ops ops{};
    ops.enqueued = [](void *, msfrs_item *, msfrs_time) {};
    ops.pick = [](void *, msfrs_time, msfrs_pick, msfrs_time *) -> msfrs_item * { return nullptr; };
    ops.picked = [](void *, msfrs_item *, msfrs_time) {};
    ops.removed = [](void *, msfrs_item *, msfrs_time, msfrs_reason) {};
    msfrs_plugin p{};
    p.magic = MSFRS_PLUGIN_MAGIC;
    p.abi_major = MSFRS_ABI_MAJOR;
    p.abi_minor = MSFRS_ABI_MINOR;
    p.size = sizeof(msfrs_plugin);
    p.kind = MSFRS_SCHED;
    p.name = "whole";
    p.summary = p.paper = "a test";
    p.sched = &ops;
    return p;
}

std::string Wrapped(const msfrs_plugin &p)
{
    try {
        return WrapPlugin(p)->path();
    } catch (const ConfigError &error) {
        return error.what();
    }
}

TEST(WrapPlugin, TakesAWholeOneAndRefusesWhatLacksAPart)
{
    EXPECT_EQ(Wrapped(Whole()), "(linked in) whole");
    auto p = Whole();
    p.sched = nullptr;
    EXPECT_EQ(Wrapped(p), "plugin whole lacks a name, a table or an operation that its kind must have");
    p = Whole();
    p.name = nullptr;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) lacks a name, a table or an operation that its kind must have");
    p = Whole();
    p.n_params = 1;
    EXPECT_EQ(Wrapped(p), "plugin whole lacks a name, a table or an operation that its kind must have");
    p = Whole();
    p.kind = 7;
    EXPECT_EQ(Wrapped(p), "plugin whole is of unknown kind 7, allowed are 1 (scheduler) and 2 (AQM)");
}

} // namespace
} // namespace msfrs
