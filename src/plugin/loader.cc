// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/loader.h"
#include "plugin/shared_object.h"
#include "plugin/trust.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace msfrs {

namespace {

const char *KindName(const uint32_t kind)
{
    return kind == MSFRS_SCHED ? "scheduler" : kind == MSFRS_AQM ? "AQM" : "plugin of unknown kind";
}

std::string WithArticle(const uint32_t kind)
{
    return (kind == MSFRS_AQM ? "an " : "a ") + std::string(KindName(kind));
}

/// The names of the plugins in `dir`, sorted.
/// \throws ConfigError if it cannot be read
std::vector<std::string> NamesIn(const std::string &dir)
{
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
        if (at->path().extension() == ".so")
            names.push_back(at->path().stem());
    }
    if (error)
        throw ConfigError("the plugin directory " + dir + " cannot be read: " + error.message());
    std::sort(names.begin(), names.end());
    return names;
}

bool Loads(const std::string &name, const msfrs_kind kind, const std::string &dir)
{
    try {
        return LoadPlugin(name, kind, dir) != nullptr;
    } catch (const ConfigError &) {
        return false;
    }
}

/// The plugins of `kind` in `dir`, for a message that includes the directory.
std::string WhatIsThere(const msfrs_kind kind, const std::string &dir)
{
    try {
        std::string text;
        for (const auto &name : NamesIn(dir))
            text += Loads(name, kind, dir) ? " " + name : "";
        return dir + (text.empty() ? std::string(" has no ") + KindName(kind) : " has:" + text);
    } catch (const ConfigError &e) {
        return e.what();
    }
}

bool ValidName(const std::string &name)
{
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](const char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

/// Where the descriptor and the tables of operations end in a minor version of the ABI.
struct Sizes {
    size_t plugin, sched, aqm;
};
constexpr Sizes SizesOf[] = {
    {offsetof(msfrs_plugin, keeps), offsetof(msfrs_sched_ops, save), sizeof(msfrs_aqm_ops)},
    {sizeof(msfrs_plugin), sizeof(msfrs_sched_ops), sizeof(msfrs_aqm_ops)},
    {sizeof(msfrs_plugin), sizeof(msfrs_sched_ops), sizeof(msfrs_aqm_ops)}, // only the host table has grown
    {sizeof(msfrs_plugin), sizeof(msfrs_sched_ops), sizeof(msfrs_aqm_ops)}, // and flows, too
};
static_assert(sizeof(SizesOf) / sizeof(*SizesOf) == MSFRS_ABI_MINOR + 1);

/// Checks that everything the plugin claims to have can be read.
void CheckAbi(const msfrs_plugin &p, const std::string &path, const msfrs_kind kind)
{
    const auto version = [](const unsigned major, const unsigned minor) {
        return std::to_string(major) + "." + std::to_string(minor);
    };
    if (p.magic != MSFRS_PLUGIN_MAGIC)
        throw ConfigError("plugin " + path + " is not an msfrs plugin: its magic number is wrong");
    if (p.abi_major != MSFRS_ABI_MAJOR || p.abi_minor > MSFRS_ABI_MINOR) {
        throw ConfigError("plugin " + path + " was built for ABI " + version(p.abi_major, p.abi_minor) +
                          ", expected ABI " + version(MSFRS_ABI_MAJOR, 0) + " to " +
                          version(MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR) + "; rebuild it" +
                          (p.abi_major == 1 ? " with this host's header; since ABI 2.0 `dequeued` of an AQM returns a "
                                              "verdict"
                                            : ""));
    }
    const auto refuseSize = [&](const char *const what, const size_t found, const size_t wanted) {
        throw ConfigError("plugin " + path + " has a " + what + " of " + std::to_string(found) + " bytes, ABI " +
                          version(p.abi_major, p.abi_minor) + " has " + std::to_string(wanted));
    };
    const auto &had = SizesOf[p.abi_minor];
    if (p.size < had.plugin)
        refuseSize("descriptor", p.size, had.plugin);
    if (kind != MSFRS_SCHED && kind != MSFRS_AQM) {
        throw ConfigError("plugin " + path + " is of unknown kind " + std::to_string(kind) +
                          ", allowed are 1 (scheduler) and 2 (AQM)");
    }
    if (p.kind != static_cast<uint32_t>(kind))
        throw ConfigError("plugin " + path + " is " + WithArticle(p.kind) + ", expected " + WithArticle(kind));
    const auto ops = kind == MSFRS_SCHED ? had.sched : had.aqm;
    if (p.ops_size < ops)
        refuseSize("table of operations (ops_size)", p.ops_size, ops);
}

PluginPtr Take(std::shared_ptr<const SharedObject> object, const msfrs_plugin &descriptor, const std::string &path,
               const msfrs_kind kind)
{
    CheckAbi(descriptor, path, kind);
    auto plugin = std::make_shared<Plugin>(std::move(object), descriptor);
    const auto &p = plugin->ops();
    const bool complete = p.name && p.summary && p.paper && (p.params || !p.n_params) && (p.gauges || !p.n_gauges) &&
                          (kind == MSFRS_AQM ? p.aqm && p.aqm->admit
                                             : p.sched && p.sched->enqueued && p.sched->pick && p.sched->picked &&
                                                   p.sched->removed);
    if (!complete)
        throw ConfigError("plugin " + path + " lacks a name, a table or an operation that its kind must have");
    const auto ops = p.sched;
    const int keeping = ops ? (ops->save != nullptr) + (ops->restore != nullptr) + (ops->resumed != nullptr) : 0;
    if (keeping != (p.keeps > 0 ? 3 : 0)) {
        throw ConfigError("plugin " + path + " has keeps=" + std::to_string(p.keeps) + " and " +
                          std::to_string(keeping) + " of save, restore and resumed; allowed are a scheduler with "
                          "keeps > 0 and all three, or neither");
    }
    return plugin;
}

/// \param kind that is wanted; nothing: either
PluginPtr FromFile(const std::string &path, const std::optional<msfrs_kind> kind)
{
    std::shared_ptr<const SharedObject> object;
    try {
        object = std::make_shared<const SharedObject>(TrustedPath(path));
    } catch (const std::runtime_error &e) {
        throw ConfigError("plugin " + path + " cannot be loaded: " + e.what());
    }
    const auto descriptor = static_cast<const msfrs_plugin *>(object->symbol(MSFRS_SYMBOL));
    if (!descriptor)
        throw ConfigError("plugin " + path + " is not an msfrs plugin: it has no symbol '" MSFRS_SYMBOL "'");
    return Take(std::move(object), *descriptor, path, kind.value_or(static_cast<msfrs_kind>(descriptor->kind)));
}

} // namespace

Plugin::Plugin(std::shared_ptr<const SharedObject> object, const msfrs_plugin &p): object_(std::move(object))
{
    std::memcpy(&plugin_, &p, SizesOf[p.abi_minor].plugin);
    if (p.kind == MSFRS_SCHED && p.sched) {
        std::memcpy(&sched_, p.sched, SizesOf[p.abi_minor].sched);
        plugin_.sched = &sched_;
    } else if (p.kind == MSFRS_AQM && p.aqm) {
        std::memcpy(&aqm_, p.aqm, SizesOf[p.abi_minor].aqm);
        plugin_.aqm = &aqm_;
    }
    plugin_.size = sizeof(plugin_);
    plugin_.ops_size = p.kind == MSFRS_SCHED ? sizeof(sched_) : sizeof(aqm_);
}

PluginPtr LoadPlugin(const std::string &name, const msfrs_kind kind, const std::string &dir)
{
    const bool isPath = name.find('/') != std::string::npos;
    if (!isPath && !ValidName(name)) {
        throw ConfigError(std::string(KindName(kind)) + " name '" + name +
                          "' is not allowed: lower case letters, digits and '-', or a path with '/'");
    }
    const auto where = dir.empty() ? DefaultPluginDir() : dir;
    const auto path = isPath ? name : where + "/" + name + ".so";
    if (faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) { // access() would check the real user
        const std::string reason = std::strerror(errno);
        throw ConfigError("no " + std::string(KindName(kind)) + " '" + name + "': " + path + ": " + reason +
                          (isPath ? "" : "; " + WhatIsThere(kind, where)));
    }
    return FromFile(path, kind);
}

std::string DescribePlugins(const std::string &dir)
{
    const auto where = dir.empty() ? DefaultPluginDir() : dir;
    std::string sections[2] = {"Schedulers in " + where + ":\n", "AQMs in " + where + ":\n"}, others;
    for (const auto &name : NamesIn(where)) {
        try {
            const auto plugin = FromFile(where + "/" + name + ".so", {});
            const auto &p = plugin->ops();
            auto &section = sections[p.kind == MSFRS_AQM];
            section += "\n" + name + ": " + p.summary + "\n  " + p.paper + "\n" + DescribeParams(p);
        } catch (const ConfigError &e) {
            others += std::string("\n") + e.what() + "\n";
        }
    }
    return sections[0] + "\n" + sections[1] + others;
}

PluginPtr WrapPlugin(const msfrs_plugin &p)
{
    return Take(nullptr, p, std::string("(linked in) ") + (p.name ? p.name : ""), static_cast<msfrs_kind>(p.kind));
}

} // namespace msfrs
