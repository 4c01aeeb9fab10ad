// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/config.h"

#include "daemon/machine.h"

#include <algorithm>

namespace msfrs::edge {

size_t Config::classNamed(const std::string_view name) const
{
    const auto named = [name](const ClassConfig &c) { return c.name == name; };
    return static_cast<size_t>(std::find_if(classes.begin(), classes.end(), named) - classes.begin());
}

bool Config::gso() const
{
    // Segments that stay together are cheaper, and one packet to the scheduler. They may stay together if 64 KB delay
    // other packets by no more than about a millisecond.
    constexpr int64_t Least = 500'000'000; // bit/s
    return queue.gso == QueueConfig::Gso::On ||
        // A party uses the rate of Squid's link, which is not known yet.
        (queue.gso == QueueConfig::Gso::Auto && segment.value.empty() &&
         (link.rate == 0 || link.rate >= Least));
}

Config Config::withClasses(const ledger::ClassList &told) const
{
    auto made = *this;
    made.classes.clear();
    for (const auto &cls : told.classes) {
        auto &c = made.classes.emplace_back();
        c.name = cls.name;
        c.weight = cls.weight;
    }
    made.defaultClass = told.other;
    return made;
}

Config ReadConfig(const std::string &path, const std::string &pluginDir)
{
    auto in = OpenFile(path);
    return ReadConfig(in, path, pluginDir);
}

std::string CheckReload(const Config &config, const std::string &file, const std::string &pluginDir)
{
    for (const auto &path : {file, config.rulesFile}) {
        if (!path.empty())
            CheckReadable(path, config.user.value);
    }
    try {
        ReadConfig(file, pluginDir);
    } catch (const RuleError &error) { // a plugin
        return "reloads will be refused: " + std::string(error.what()) + ", as user " + config.user.value;
    }
    return {};
}

std::string NeedsRestart(const Config &now, const Config &next)
{
    const std::string how = ": a reload cannot change this; restart msfrs-edge";
    if (!(now.queue == next.queue) || now.gso() != next.gso())
        return next.queue.where +
            ": another queue, or other threads, gso, fail-open, conntrack, realtime or buffer" + how;
    if (now.control.value != next.control.value)
        return "control " + next.control.value + how;
    if (now.excess.socket != next.excess.socket || now.excess.interval != next.excess.interval)
        return (next.excess.where.empty() ? "without excess" : next.excess.where + ": another socket or interval") +
            how;
    if (now.segment.value != next.segment.value)
        return (next.segment.value.empty() ? "without segment" : next.segment.where + ": another segment") + how;
    if (now.user.value != next.user.value)
        return "user " + next.user.value + how;
    return {};
}

} // namespace msfrs::edge
