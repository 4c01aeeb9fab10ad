// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/plugins.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace msfrs::test {

namespace {

/// The values of a parameter that select a behaviour, as opposed to an amount.
std::vector<std::string> Alternatives(const msfrs_param &p)
{
    if (p.type == MSFRS_BOOL)
        return {"on", "off"};
    std::vector<std::string> all;
    if (p.type == MSFRS_CHOICE) {
        std::istringstream choices(p.choices);
        for (std::string one; std::getline(choices, one, '|');)
            all.push_back(one);
    }
    return all;
}

std::vector<Variant> VariantsOf(const std::string &name, const msfrs_plugin &p)
{
    std::vector<Variant> all{{name, {}, static_cast<msfrs_kind>(p.kind)}};
    for (uint32_t n = 0; n < p.n_params; ++n) {
        const auto values = Alternatives(p.params[n]);
        std::vector<Variant> more;
        for (const auto &variant : all) {
            for (const auto &value : values) {
                auto with = variant;
                with.settings.push_back({p.params[n].name, value});
                more.push_back(std::move(with));
            }
        }
        if (!more.empty())
            all = std::move(more);
    }
    return all;
}

} // namespace

std::string PluginDir() { return TEST_PLUGIN_DIR; }

std::string TreeFile(const std::string &name) { return TEST_TREE "/" + name; }

std::string PluginList() { return TEST_PLUGINS; }

std::string TestModule(const std::string &name) { return TEST_MODULE_DIR "/" + name + ".so"; }

Engine::Part Variant::load() const
{
    Engine::Part part;
    part.plugin = LoadPlugin(name, kind, PluginDir());
    part.params = ParseParams(part.plugin->ops(), settings);
    return part;
}

std::string Variant::text() const
{
    const auto values = PrintSettings(settings);
    return values.empty() ? name : name + " " + values;
}

std::string Variant::testName() const
{
    auto safe = text();
    if (const auto slash = safe.rfind('/'); slash != std::string::npos)
        safe.erase(0, slash + 1);
    for (auto &c : safe) {
        if (!std::isalnum(static_cast<unsigned char>(c)))
            c = '_';
    }
    return safe;
}

Variant ParseVariant(const std::string &text, const msfrs_kind kind)
{
    Variant variant;
    variant.kind = kind;
    std::istringstream words(text);
    if (!(words >> variant.name))
        throw std::invalid_argument("a plugin's name is missing");
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        if (equals == std::string::npos)
            throw std::invalid_argument("'" + word + "': expected name=value");
        variant.settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
    }
    return variant;
}

bool IsBuilt(const std::string &name)
{
    return (" " + PluginList() + " ").find(" " + name + ".la ") != std::string::npos;
}

std::vector<const char *> Built(std::vector<const char *> texts)
{
    const auto missing = [](const char *const text) { return !IsBuilt(ParseVariant(text).name); };
    texts.erase(std::remove_if(texts.begin(), texts.end(), missing), texts.end());
    return texts;
}

std::vector<Variant> AllVariants(const msfrs_kind kind)
{
    std::vector<std::string> names;
    std::istringstream archives(PluginList());
    for (std::string archive; archives >> archive;)
        names.push_back(archive.substr(0, archive.rfind(".la")));
    const char *const others = std::getenv("MSFRS_CONFORMANCE_PLUGINS");
    std::istringstream paths(others ? others : "");
    for (std::string path; std::getline(paths, path, ':');) {
        if (path.find('/') == std::string::npos)
            path.insert(0, "./"); // a path, not a name
        names.push_back(path);
    }
    std::vector<Variant> all;
    for (const auto &name : names) {
        // The name does not tell the kind; the plugin does.
        for (const auto tried : {MSFRS_SCHED, MSFRS_AQM}) {
            try {
                const auto plugin = LoadPlugin(name, tried, PluginDir());
                if (tried == kind) {
                    const auto some = VariantsOf(name, plugin->ops());
                    all.insert(all.end(), some.begin(), some.end());
                }
                break;
            } catch (const ConfigError &) {
                if (tried == MSFRS_AQM)
                    throw; // neither kind: broken
            }
        }
    }
    return all;
}

} // namespace msfrs::test
