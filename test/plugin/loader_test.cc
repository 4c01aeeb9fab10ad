// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/engine.h"
#include "plugin/loader.h"
#include "support/directory.h"
#include "support/plugins.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace msfrs {
namespace {

using test::Directory;
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

/// The loader's message about a test module, without the leading path.
std::string Refusal(const std::string &module, const msfrs_kind kind = MSFRS_AQM)
{
    const auto path = TestModule(module);
    const auto text = Refusal(path, kind, "");
    const auto begin = "plugin " + path;
    return text.compare(0, begin.size(), begin) == 0 ? text.substr(begin.size()) : text;
}

TEST(Loader, LoadsWhatTheBuildHas)
{
    const auto msf = LoadPlugin("msf", MSFRS_SCHED, PluginDir());
    EXPECT_STREQ(msf->ops().name, "msf");
    EXPECT_EQ(LoadPlugin(PluginDir() + "/fifo.so", MSFRS_SCHED, "/nowhere")->ops().kind, MSFRS_SCHED);
}

TEST(Loader, LoadsAPluginTwice)
{
    const auto one = LoadPlugin("msf", MSFRS_SCHED, PluginDir());
    auto two = LoadPlugin("msf", MSFRS_SCHED, PluginDir());
    two.reset();
    EXPECT_STREQ(one->ops().name, "msf") << "unloaded with the first of two references";
}

/// A plugin in a separate directory, whose file is replaced in place: the inode stays.
class InPlace {
public:
    explicit InPlace(const std::string &name): file_(dir_.path() + "/plugin.so") { put(name); }
    void put(const std::string &name)
    {
        std::ifstream from(PluginDir() + "/" + name + ".so", std::ios::binary);
        std::ofstream(file_, std::ios::binary) << from.rdbuf();
    }
    void shorten() { std::ofstream(file_, std::ios::trunc | std::ios::binary); }
    const std::string &file() const { return file_; }

private:
    Directory dir_;
    std::string file_;
};

/// Runs code and reads constants of a plugin; the resulting order identifies it.
std::string Summary(const PluginPtr &plugin)
{
    Engine engine({plugin, ParseParams(plugin->ops(), {})}, {}, Engine::Cost::Exact, 1, 0,
                  {[](int, const std::string &) {}, [] { return uint64_t(1); }});
    auto &c = *engine.addClass("c", 1);
    const int64_t est[MSFRS_RESOURCES] = {1000};
    msfrs_item *item;
    for (const char *flow : {"a", "a", "b"})
        engine.offer(engine.flow(c, flow), est, nullptr, 0, item);
    std::string order = plugin->ops().name;
    for (msfrs_time wake; (item = engine.pick(0, MSFRS_PICK_ANY, wake)); engine.done(*item, 0))
        order += " " + static_cast<NamedFlow *>(item->flow)->name();
    return order;
}

std::string Maps()
{
    std::ifstream maps("/proc/self/maps");
    return {std::istreambuf_iterator<char>(maps), {}};
}

size_t OpenDescriptors()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(Loader, AFileOverwrittenInPlaceChangesNothingOfWhatIsLoaded)
{
    const auto descriptors = OpenDescriptors();
    InPlace so("fifo");
    auto before = LoadPlugin(so.file(), MSFRS_SCHED, "");
    so.shorten(); // without a copy: SIGBUS
    EXPECT_EQ(Summary(before), "fifo a a b");
    so.put("drr");
    EXPECT_EQ(Summary(before), "fifo a a b");
    auto after = LoadPlugin(so.file(), MSFRS_SCHED, "");
    EXPECT_EQ(Summary(after), "drr a b a") << "a reconfigured host loads the present file";
    EXPECT_EQ(Summary(before), "fifo a a b");
    before.reset();
    EXPECT_EQ(Summary(after), "drr a b a");
    after.reset();
    for (int n = 0; n < 3; ++n) { // each time with the same descriptor number
        so.put(n % 2 ? "drr" : "fifo");
        EXPECT_EQ(Summary(LoadPlugin(so.file(), MSFRS_SCHED, "")), n % 2 ? "drr a b a" : "fifo a a b");
    }
    EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST(Loader, TheMemoryOfAPluginIsNamedAfterItsFile)
{
    const InPlace so("fifo");
    const auto plugin = LoadPlugin(so.file(), MSFRS_SCHED, "");
    EXPECT_NE(Maps().find("msfrs:" + so.file()), std::string::npos) << Maps();
}

TEST(Loader, LoadsTheFileItselfWhereItCannotBeCopied)
{
    const InPlace so("fifo");
    rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit nothing{0, usual.rlim_max};
    setrlimit(RLIMIT_FSIZE, &nothing); // as if the system had no memory for a copy
    const auto descriptors = OpenDescriptors();
    const auto plugin = LoadPlugin(so.file(), MSFRS_SCHED, "");
    setrlimit(RLIMIT_FSIZE, &usual);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(Summary(plugin), "fifo a a b");
    EXPECT_EQ(Maps().find("msfrs:" + so.file()), std::string::npos);
    EXPECT_NE(Maps().find(so.file()), std::string::npos);
    EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST(Loader, MissingNamesWhatIsThere)
{
    Directory dir;
    for (const auto *const name : {"msf.so", "drr.so", "codel.so"})
        std::filesystem::copy_file(PluginDir() + "/" + name, dir.path() + "/" + name);
    dir.add("empty.so");
    dir.add("readme.txt");
    dir.add(".so");
    EXPECT_EQ(Refusal("wfq", MSFRS_SCHED, dir.path()),
              "no scheduler 'wfq': " + dir.path() + "/wfq.so: No such file or directory; " + dir.path() +
                  " has: drr msf")
        << "a name of the other kind would be refused next";
    EXPECT_EQ(Refusal("red", MSFRS_AQM, dir.path()),
              "no AQM 'red': " + dir.path() + "/red.so: No such file or directory; " + dir.path() + " has: codel");
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
    EXPECT_EQ(Refusal("other-major"), " was built for ABI 3.0, expected ABI 2.0 to 2.3; rebuild it");
    EXPECT_EQ(Refusal("newer-minor"), " was built for ABI 2.4, expected ABI 2.0 to 2.3; rebuild it");
}

TEST(Loader, TruncatedDescriptor)
{
    EXPECT_EQ(Refusal("truncated"),
              " has a descriptor of 16 bytes, ABI 2.3 has " + std::to_string(sizeof(msfrs_plugin)));
}

TEST(Loader, AnotherKind)
{
    EXPECT_EQ(Refusal("accept-all", MSFRS_SCHED), " is an AQM, expected a scheduler");
    EXPECT_EQ(Refusal("checker", MSFRS_AQM), " is a scheduler, expected an AQM");
    EXPECT_EQ(Refusal("accept-all", MSFRS_AQM), "loaded");
}

TEST(Loader, LacksAnOperation)
{
    EXPECT_EQ(Refusal("no-admit"), " lacks a name, a table or an operation that its kind must have");
}

TEST(DescribePlugins, NamesWhatThereIsWithParametersAndWhatIsNone)
{
    Directory dir;
    for (const std::string name : {"fifo", "drr", "codel"})
        std::filesystem::copy(PluginDir() + "/" + name + ".so", dir.path() + "/" + name + ".so");
    dir.add("text.so", "no shared object");
    const auto text = DescribePlugins(dir.path());
    const auto at = [&](const std::string &words) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
        return text.find(words);
    };
    const size_t order[] = {
        at("Schedulers in " + dir.path() + ":\n\ndrr: deficit round robin"),
        at("    quantum=1514  a whole number from 1 to 1000000000 bytes  bytes for a weight of 1 in a round; "),
        at("\nfifo: "), at("    no parameters\n"), at("AQMs in " + dir.path() + ":\n\ncodel: "),
        at("    ecn=on        on or off                             mark ECN-capable packets instead of dropping them early"),
        at("\nplugin " + dir.path() + "/text.so cannot be loaded: "),
    };
    EXPECT_TRUE(std::is_sorted(std::begin(order), std::end(order))) << text;
    EXPECT_THROW(DescribePlugins(dir.path() + "/not"), ConfigError);
}

/// A scheduler with everything that is mandatory.
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
    p.ops_size = sizeof(ops);
    return p;
}

std::string Wrapped(const msfrs_plugin &p)
{
    try {
        return std::string(WrapPlugin(p)->ops().name) + " is accepted";
    } catch (const ConfigError &error) {
        return error.what();
    }
}

TEST(WrapPlugin, TakesAWholeOneAndRefusesWhatLacksAPart)
{
    EXPECT_EQ(Wrapped(Whole()), "whole is accepted");
    auto p = Whole();
    p.sched = nullptr;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole lacks a name, a table or an operation that its kind must have");
    p = Whole();
    p.name = nullptr;
    EXPECT_EQ(Wrapped(p), "plugin (linked in)  lacks a name, a table or an operation that its kind must have");
    p = Whole();
    p.n_params = 1;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole lacks a name, a table or an operation that its kind must have");
    p = Whole();
    p.kind = 7;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole is of unknown kind 7, allowed are 1 (scheduler) and 2 (AQM)");
}

TEST(WrapPlugin, RefusesATableOfOperationsThatItsMinorDidNotHave)
{
    auto p = Whole();
    p.ops_size = 8;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole has a table of operations (ops_size) of 8 bytes, ABI 2.3 has " +
                              std::to_string(sizeof(msfrs_sched_ops)));
    p = Whole();
    p.size = offsetof(msfrs_plugin, ops_size);
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole has a descriptor of " + std::to_string(p.size) +
                              " bytes, ABI 2.3 has " + std::to_string(sizeof(msfrs_plugin)));
}

TEST(WrapPlugin, ReadsOfAnOlderMinorWhatThatHad)
{
    auto p = Whole();
    auto ops = *p.sched;
    ops.resumed = [](void *, msfrs_item *, int, msfrs_time) {}; // beyond the end of its table
    p.sched = &ops;
    p.abi_minor = 0;
    p.keeps = 7;
    p.size = offsetof(msfrs_plugin, keeps);
    p.ops_size = offsetof(msfrs_sched_ops, save);
    const auto loaded = WrapPlugin(p);
    EXPECT_EQ(loaded->ops().keeps, 0u);
    EXPECT_EQ(loaded->ops().sched->resumed, nullptr);
    EXPECT_EQ(loaded->ops().sched->pick, ops.pick);
}

TEST(WrapPlugin, WantsAllThatItTakesToKeepSomethingOrNothing)
{
    auto p = Whole();
    auto ops = *p.sched;
    p.sched = &ops;
    const std::string allowed = "; allowed are a scheduler with keeps > 0 and all three, or neither";
    p.keeps = 1;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole has keeps=1 and 0 of save, restore and resumed" + allowed);
    ops.save = [](void *, const msfrs_move *, msfrs_time) {};
    ops.restore = [](void *, const msfrs_owner *, const double *, uint32_t, msfrs_time) { return 0; };
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole has keeps=1 and 2 of save, restore and resumed" + allowed);
    ops.resumed = [](void *, msfrs_item *, int, msfrs_time) {};
    EXPECT_EQ(Wrapped(p), "whole is accepted");
    p.keeps = 0;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) whole has keeps=0 and 3 of save, restore and resumed" + allowed);
}

TEST(WrapPlugin, TellsAPluginOfAbi1WhatHasChanged)
{
    const auto plugin = LoadPlugin("droptail", MSFRS_AQM, PluginDir());
    auto p = plugin->ops();
    p.abi_major = 1;
    p.abi_minor = 2;
    EXPECT_EQ(Wrapped(p), "plugin (linked in) droptail was built for ABI 1.2, expected ABI 2.0 to 2.3; rebuild it with "
                          "this host's header; since ABI 2.0 `dequeued` of an AQM returns a verdict");
}

} // namespace
} // namespace msfrs
