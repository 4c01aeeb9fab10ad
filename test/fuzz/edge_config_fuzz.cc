// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The configuration of msfrs-edge. Any file is either refused with its name, in printable characters, or gives a
/// configuration within its ranges, in which every packet finds a class.
#include "edge/daemon/schedule.h"
#include "require.h"

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>

namespace {

/// The fuzzer counts coverage in every module it has seen: none may be unloaded.
std::vector<msfrs::PluginPtr> AllPlugins()
{
    std::vector<msfrs::PluginPtr> all;
    for (const auto &entry : std::filesystem::directory_iterator(FUZZ_PLUGIN_DIR)) {
        for (const auto kind : {MSFRS_SCHED, MSFRS_AQM}) {
            try {
                if (entry.path().extension() == ".so")
                    all.push_back(msfrs::LoadPlugin(entry.path().stem(), kind, FUZZ_PLUGIN_DIR));
            } catch (const msfrs::ConfigError &) { // of another kind, or not a plugin
            }
        }
    }
    return all;
}

} // namespace

/// Replaces the C library's function to prevent private copies of plugins, each of which would be a separate module and
/// be unloaded again. The loader then uses the files themselves, which stay loaded.
extern "C" int memfd_create(const char *, unsigned) noexcept
{
    errno = ENOSYS;
    return -1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs;
    using namespace edge;
    static const auto kept = AllPlugins();
    const std::string text(reinterpret_cast<const char *>(data), size);
    // Files and shared objects of the system are not valid input: with a directory that does not exist, only plugins
    // given by a path could be found.
    if (text.find('/') != text.npos && (text.find("rules") != text.npos || text.find("scheduler") != text.npos ||
                                        text.find("aqm") != text.npos))
        return 0;
    std::istringstream in(text);
    Config config;
    try {
        config = ReadConfig(in, "fuzzed", FUZZ_PLUGIN_DIR);
    } catch (const RuleError &error) {
        const std::string_view message(error.what());
        Require(message.substr(0, 6) == "fuzzed" && message.size() < 4000);
        for (const char c : message)
            Require(c >= ' ' && c <= '~');
        return 0;
    }
    Require(config.limit >= 1 && config.limit <= MostLimit && config.defaultClass < config.classes.size());
    Require(!config.classes[config.defaultClass].interior && config.queue.number + config.queue.threads <= 65536);
    const Schedule schedule(std::make_shared<const Config>(config),
                            {[](int, const std::string &) {}, [] { return uint64_t{0}; }});
    Traits traits;
    traits.readable = true;
    Require(!config.classes[schedule.classOf(traits)].interior);
    return 0;
}
