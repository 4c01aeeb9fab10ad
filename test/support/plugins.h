// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The plugins of this build, loaded by the library's own loader.
#pragma once

#include "engine/engine.h"

#include <string>
#include <vector>

namespace msfrs::test {

/// The directory of the build's plugins.
std::string PluginDir();
/// Path of a file, relative to the top of the tree.
std::string TreeFile(const std::string &name);
/// The build's plugins, "msf.la fifo.la ...", from the Makefile.
std::string PluginList();
/// Path of a module that only tests load (test/plugin/).
std::string TestModule(const std::string &name);

/// A plugin with the settings of a test.
struct Variant {
    std::string name;              ///< a plugin's name, or a path
    std::vector<Setting> settings; ///< those that differ from defaults
    msfrs_kind kind = MSFRS_SCHED;

    Engine::Part load() const;
    std::string text() const;      ///< as in squid.conf
    std::string testName() const;  ///< letters, digits and '_' only, as GoogleTest requires
};

/// "msf wake=paper" -> a scheduler with its settings
Variant ParseVariant(const std::string &text, msfrs_kind kind = MSFRS_SCHED);

/// Whether the build has that plugin; with --without-satellites only the core's are built.
bool IsBuilt(const std::string &name);
/// Those texts, such as "red limit=5", whose plugin the build has.
std::vector<const char *> Built(std::vector<const char *> texts);
/// Skips a test whose plugin the build does not have.
#define NEEDS_PLUGIN(name)                                                                                             \
    if (!IsBuilt(name))                                                                                                \
    GTEST_SKIP() << "this build has no plugin " << name

/// Every plugin of a kind in the build, in every combination of its CHOICE and BOOL parameters, so that a new plugin
/// is tested without further changes. MSFRS_CONFORMANCE_PLUGINS adds plugins by path, separated by ':'.
std::vector<Variant> AllVariants(msfrs_kind kind);

} // namespace msfrs::test
