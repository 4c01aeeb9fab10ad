// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The plugins of this build, loaded by the same loader as everywhere.
#ifndef MSFRS_TEST_SUPPORT_PLUGINS_H
#define MSFRS_TEST_SUPPORT_PLUGINS_H

#include "engine/engine.h"

#include <string>
#include <vector>

namespace msfrs::test {

/// Where the plugins of the build are.
std::string PluginDir();
/// Path of a file of the tree, from its top.
std::string TreeFile(const std::string &name);
/// The plugins that the build has, "msf.la fifo.la ...", from the Makefile.
std::string PluginList();
/// Path of a module that only tests load (test/plugin/).
std::string TestModule(const std::string &name);

/// A plugin with the settings it is to be tested with.
struct Variant {
    std::string name;              ///< a plugin's name, or a path
    std::vector<Setting> settings; ///< those that are not defaults
    msfrs_kind kind = MSFRS_SCHED;

    Engine::Part load() const;
    std::string text() const;      ///< as in squid.conf
    std::string testName() const;  ///< letters, digits and '_' only, as GoogleTest wants
};

/// "msf wake=paper" -> a scheduler with its settings
Variant ParseVariant(const std::string &text, msfrs_kind kind = MSFRS_SCHED);

/// Whether the build has that plugin: with --without-satellites it has the core's alone.
bool IsBuilt(const std::string &name);
/// Those of some texts, such as "red limit=5", whose plugin the build has.
std::vector<const char *> Built(std::vector<const char *> texts);
/// Ends a test that is of a plugin which the build does not have.
#define NEEDS_PLUGIN(name)                                                                                             \
    if (!IsBuilt(name))                                                                                                \
    GTEST_SKIP() << "this build has no plugin " << name

/// Every plugin of a kind that the build has, in every combination of its CHOICE and BOOL parameters: a plugin that
/// is added to the build is tested without a word here. So are those whose paths MSFRS_CONFORMANCE_PLUGINS names,
/// separated by ':'.
std::vector<Variant> AllVariants(msfrs_kind kind);

} // namespace msfrs::test

#endif
