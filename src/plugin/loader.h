// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Loads plugins and parses their parameters. Every host loads plugins through this.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace msfrs {

/// A mistake in the configuration. what() is a sentence that names the value and what is allowed; the host adds
/// file and line.
class ConfigError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// One name=value as the user wrote it, not yet checked.
struct Setting {
    std::string name, value;
};

class SharedObject;

/// A loaded plugin in the layout of this ABI, whatever minor it was built for: fields that its minor lacks are 0 or
/// NULL. Unloaded with the last reference.
class Plugin {
public:
    /// \param object that contains the descriptor; null if the plugin is linked in
    Plugin(std::shared_ptr<const SharedObject> object, const msfrs_plugin &descriptor);
    Plugin(const Plugin &) = delete;
    const msfrs_plugin &ops() const { return plugin_; }

private:
    std::shared_ptr<const SharedObject> object_;
    msfrs_sched_ops sched_{};
    msfrs_aqm_ops aqm_{};
    msfrs_plugin plugin_{};
};
using PluginPtr = std::shared_ptr<const Plugin>;

/// Loads `name` of `kind` from `dir` (name.so), or from the file itself if name contains '/'. A loaded plugin does not
/// change if its file is overwritten; the next call loads the new contents (plugin/shared_object.h). A process that is
/// root, or may become root, loads no file that others could have changed (plugin/trust.h).
/// \throws ConfigError: not found (names those present), not trusted, not a plugin, another ABI (names both) or kind
PluginPtr LoadPlugin(const std::string &name, msfrs_kind kind, const std::string &dir);

/// The same checks for a plugin that is linked into the program; for tests. \throws ConfigError as LoadPlugin()
PluginPtr WrapPlugin(const msfrs_plugin &);

/// Readable text: all plugins of a directory, with the name, default, range, unit and meaning of each parameter. A file
/// that is not a plugin is listed with the reason.
/// \throws ConfigError if the directory cannot be read
std::string DescribePlugins(const std::string &dir);

/// Readable text: the parameters of a plugin, one a line.
std::string DescribeParams(const msfrs_plugin &);

/// The directory of the installed plugins; set by configure.
std::string DefaultPluginDir();

/// \returns the values of a plugin's parameter table in its order: defaults, overridden by `settings`
/// \throws ConfigError unknown name (with the known ones), name given twice, wrong type, out of range
std::vector<msfrs_value> ParseParams(const msfrs_plugin &, const std::vector<Setting> &settings);

/// \returns `settings` as one line that parses to the same values
std::string PrintSettings(const std::vector<Setting> &);

} // namespace msfrs
