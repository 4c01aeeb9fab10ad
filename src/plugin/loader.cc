// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/loader.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#ifndef MSFRS_PLUGINDIR
#define MSFRS_PLUGINDIR "/usr/local/lib/msfrs"
#endif

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

bool Loads(const std::string &name, const msfrs_kind kind, const std::string &dir)
{
    try {
        return LoadPlugin(name, kind, dir) != nullptr;
    } catch (const ConfigError &) {
        return false;
    }
}

/// The plugins of `kind` in `dir`, for a message; the directory is part of the answer.
std::string WhatIsThere(const msfrs_kind kind, const std::string &dir)
{
    std::vector<std::string> names;
    if (DIR *const d = opendir(dir.c_str())) {
        while (const dirent *const entry = readdir(d)) {
            const std::string file = entry->d_name;
            if (file.size() <= 3 || file.compare(file.size() - 3, 3, ".so") != 0)
                continue;
            const auto name = file.substr(0, file.size() - 3);
            if (Loads(name, kind, dir))
                names.push_back(name);
        }
        closedir(d);
    } else {
        return "the plugin directory " + dir + " cannot be read: " + std::strerror(errno);
    }
    std::sort(names.begin(), names.end());
    std::string text = dir + " has:";
    for (const auto &name : names)
        text += " " + name;
    return names.empty() ? dir + " has no " + KindName(kind) : text;
}

bool ValidName(const std::string &name)
{
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](const char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

void Check(const msfrs_plugin &p, const std::string &path, const msfrs_kind kind)
{
    const auto version = [](const unsigned major, const unsigned minor) {
        return std::to_string(major) + "." + std::to_string(minor);
    };
    if (p.magic != MSFRS_PLUGIN_MAGIC)
        throw ConfigError("plugin " + path + " is not an msfrs plugin: its magic number is wrong");
    if (p.abi_major != MSFRS_ABI_MAJOR || p.abi_minor > MSFRS_ABI_MINOR) {
        throw ConfigError("plugin " + path + " was built for ABI " + version(p.abi_major, p.abi_minor) +
                          ", wanted is ABI " + version(MSFRS_ABI_MAJOR, 0) + " to " +
                          version(MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR) + "; rebuild it");
    }
    if (p.size < sizeof(msfrs_plugin)) {
        throw ConfigError("plugin " + path + " has a descriptor of " + std::to_string(p.size) + " bytes, wanted are " +
                          std::to_string(sizeof(msfrs_plugin)));
    }
    if (kind != MSFRS_SCHED && kind != MSFRS_AQM) {
        throw ConfigError("plugin " + path + " is of unknown kind " + std::to_string(kind) +
                          ", allowed are 1 (scheduler) and 2 (AQM)");
    }
    if (p.kind != static_cast<uint32_t>(kind))
        throw ConfigError("plugin " + path + " is " + WithArticle(p.kind) + ", wanted is " + WithArticle(kind));
    const bool complete = p.name && p.summary && p.paper && (p.params || !p.n_params) && (p.gauges || !p.n_gauges) &&
                          (kind == MSFRS_AQM ? p.aqm && p.aqm->admit
                                             : p.sched && p.sched->enqueued && p.sched->pick && p.sched->picked &&
                                                   p.sched->removed);
    if (!complete)
        throw ConfigError("plugin " + path + " lacks a name, a table or an operation that its kind must have");
}

class SharedObject final : public Plugin {
public:
    SharedObject(void *const handle, const msfrs_plugin &p, std::string path):
        handle_(handle), plugin_(p), path_(std::move(path)) {}
    ~SharedObject() override { dlclose(handle_); }
    const msfrs_plugin &ops() const override { return plugin_; }
    const std::string &path() const override { return path_; }

private:
    void *handle_;
    const msfrs_plugin &plugin_;
    std::string path_;
};

class LinkedIn final : public Plugin {
public:
    explicit LinkedIn(const msfrs_plugin &p): plugin_(p), path_(std::string("(linked in) ") + p.name) {}
    const msfrs_plugin &ops() const override { return plugin_; }
    const std::string &path() const override { return path_; }

private:
    const msfrs_plugin &plugin_;
    std::string path_;
};

} // namespace

std::string DefaultPluginDir() { return MSFRS_PLUGINDIR; }

PluginPtr LoadPlugin(const std::string &name, const msfrs_kind kind, const std::string &dir)
{
    const bool isPath = name.find('/') != std::string::npos;
    if (!isPath && !ValidName(name)) {
        throw ConfigError(std::string(KindName(kind)) + " name '" + name +
                          "' is not allowed: lower case letters, digits and '-', or a path with '/'");
    }
    const auto where = dir.empty() ? DefaultPluginDir() : dir;
    const auto path = isPath ? name : where + "/" + name + ".so";
    if (faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) { // access() would ask for the real user
        const std::string reason = std::strerror(errno);
        throw ConfigError("no " + std::string(KindName(kind)) + " '" + name + "': " + path + ": " + reason +
                          (isPath ? "" : "; " + WhatIsThere(kind, where)));
    }
    dlerror();
    void *const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        throw ConfigError("plugin " + path + " cannot be loaded: " + dlerror());
    const auto symbol = static_cast<const msfrs_plugin *>(dlsym(handle, MSFRS_SYMBOL));
    try {
        if (!symbol)
            throw ConfigError("plugin " + path + " is not an msfrs plugin: it has no symbol '" MSFRS_SYMBOL "'");
        Check(*symbol, path, kind);
    } catch (...) {
        dlclose(handle);
        throw;
    }
    return std::make_shared<SharedObject>(handle, *symbol, path);
}

PluginPtr WrapPlugin(const msfrs_plugin &p)
{
    Check(p, p.name ? p.name : "(linked in)", static_cast<msfrs_kind>(p.kind));
    return std::make_shared<LinkedIn>(p);
}

} // namespace msfrs
