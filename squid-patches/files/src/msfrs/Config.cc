/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "globals.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/FoundRate.h"
#include "msfrs/lib/engine/request_scheduler.h"
#include "msfrs/lib/quota/quotas.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"
#include "tools.h"

#include <net/if.h>

#include <algorithm>
#include <map>

namespace msfrs::squid
{

namespace
{

/// "gold, silver" for messages
std::string
Names(const ClassLines &classes)
{
    std::string names;
    for (const auto line: classes)
        names += (names.empty() ? "" : ", ") + line->name;
    return names;
}

/// the value of an option in a line, or its default
template <class T>
T
Value(const OptionsLine * const line, const Spec &spec)
{
    return static_cast<T>(line ? line->options.number(spec) : spec.byDefault);
}

std::string
InterfaceOf(const Link &link)
{
    return link.options.text(Table::Link::Interface);
}

PluginChoice
Choice(const PluginLine &line)
{
    PluginChoice choice;
    choice.name = line.name;
    choice.loaded = line.plugin;
    for (const auto &[name, value]: line.settings)
        choice.settings.push_back({name, value});
    return choice;
}

/// makes a scheduler and discards it, to check what only the scheduler and its plugins can check
void
Try(const RequestConfig &config, const Place &place)
{
    RequestHost host;
    host.log = [](int, const std::string &) {};
    host.random = [] { return uint64_t(1); };
    host.openCounter = [](const std::string &) { return std::unique_ptr<InterfaceCounter>(); };
    try {
        const RequestScheduler attempt(config, host, 0);
    } catch (const ConfigError &e) {
        place.refuse(e.what());
    }
}

/// the line that selects the arbiter, or by which the default one is used; only for msfrs on
Directive &
ArbiterLine(const Configuration &config)
{
    if (config.arbiter)
        return *config.arbiter;
    return *config.toggle;
}

/// Loads a plugin, with the privileges with which squid.conf is read. At a reconfiguration a failure is only a
/// warning: the file may have been removed since Squid was started.
/// \returns nil if none is chosen, or if the running one stays
PluginPtr
Load(const PluginChoice &choice, const msfrs_kind kind, const Place &place)
{
    if (choice.name == "none")
        return nullptr;
    try {
        return LoadPlugin(choice.name, kind, "");
    } catch (const ConfigError &e) {
        if (!reconfiguring)
            place.refuse(e.what());
        place.warn(std::string(e.what()) + "; what runs stays");
        return nullptr;
    }
}

} // namespace

bool
Configuration::on() const
{
    return toggle && toggle->on;
}

void
Configuration::check()
{
    checkClasses();
    checkAccess();
    if (!on())
        return; // the rest is not used
    checkPresence();
    checkQuotas();
    checkPlugins();
}

void
Configuration::checkClasses() const
{
    if (!classes)
        return;

    std::map<std::string, const ClassLine *> seen;
    const ClassLine *first = nullptr; // marked default
    for (const auto line: *classes) {
        const auto [known, added] = seen.emplace(line->name, line);
        if (!added)
            line->place.refuse("class " + line->name + " is already defined at " + known->second->place.where());
        if (!line->isDefault())
            continue;
        if (first)
            line->place.refuse("class " + line->name + " is a second default; the first is " + first->name + " at " +
                               first->place.where() + ", and only one is allowed");
        first = line;
    }
    if (!first)
        classes->back()->place.refuse("no class is the default; add the word default to one of " + Names(*classes));
}

void
Configuration::checkAccess()
{
    const auto count = classes ? classes->size() : 0;
    std::vector<bool> reached(count), narrowed(count), closed(count); // by allow, any deny, "deny all"
    auto open = true; // until an unconditional "allow all"
    for (const auto line: access ? *access : AccessLines()) {
        if (!classes)
            line->place.refuse("class " + line->className + " is unknown because there is no msfrs_class line");
        const auto found = std::find_if(classes->begin(), classes->end(), [&](const ClassLine *c) {
            return c->name == line->className;
        });
        if (found == classes->end())
            line->place.refuse("class " + line->className + " is unknown; known are " + Names(*classes));
        const auto cls = line->cls = found - classes->begin();
        if (!line->allow) {
            narrowed[cls] = true;
            closed[cls] = closed[cls] || line->matchesAll();
        } else if (open && !closed[cls]) {
            reached[cls] = true;
            open = narrowed[cls] || !line->matchesAll();
        }
    }
    if (!classes)
        return;
    for (size_t i = 0; i < classes->size(); ++i) {
        const auto &line = *(*classes)[i];
        const auto taken = std::any_of(classes->begin(), classes->end(), [&](const ClassLine *c) {
            return c->quota().over == line.name;
        });
        if (!reached[i] && !taken && !line.isDefault())
            line.place.warn("no request can get into class " + line.name +
                            "; give it an msfrs_access allow line before another class takes all");
    }
}

void
Configuration::checkPresence() const
{
    if (!links)
        toggle->place.refuse("on needs the rate of the link; add a line such as msfrs_link rate=20Mbit");
    if (!classes)
        toggle->place.refuse("on needs a class; add a line such as msfrs_class all weight=1 default");
    for (const auto link: *links) {
        CheckFoundRate(*this, *link);
        const auto interface = InterfaceOf(*link);
        if (!interface.empty() && !if_nametoindex(interface.c_str()))
            link->place.warn("there is no interface " + interface +
                             " now; until there is, the bytes of responses are counted instead");
    }
    checkLinks();
    if (Value<double>(queue, Table::Queue::MaxWait) * 1e-9 >= Config.Timeout.read)
        (queue ? queue->place : toggle->place).warn("max_wait of msfrs_queue should be below read_timeout");
}

/// Several links are told apart by their interfaces.
void
Configuration::checkLinks() const
{
    if (links->size() == 1)
        return;
    std::map<std::string, const Link *> seen;
    for (const auto link: *links) {
        const auto interface = InterfaceOf(*link);
        if (interface.empty())
            link->place.refuse("interface= is missing; each of several links needs it, as the interface by which a "
                               "connection leaves tells which link it is charged to");
        const auto [known, added] = seen.emplace(interface, link);
        if (!added)
            link->place.refuse("interface " + interface + " is that of the link at " + known->second->place.where() +
                               "; give the interface of the other link");
        if (link->options.has(Table::Link::Shared))
            link->place.refuse("shared is not possible with several links; leave it out, or have one msfrs_link");
    }
    const auto &second = links->at(1)->place;
    if (InDaemonMode() && Config.workers > 1)
        second.refuse("several links are not possible with workers " + std::to_string(Config.workers) +
                      "; give workers 1, or one msfrs_link");
    if (SharesLink())
        second.refuse("a second link is not possible while Squid shares the first, as it has since it was started; "
                      "start Squid again");
    if (excess)
        excess->place.refuse("with several links it is not known by which the reported bytes came; leave it out, or "
                             "have one msfrs_link");
}

void
Configuration::checkPlugins() const
{
    // one at a time, to know which line is at fault
    auto config = requestConfig(*links->front());
    const auto chosen = config.admission;
    config.admission = PluginChoice{"none", {}};
    auto &line = ArbiterLine(*this);
    config.arbiter.loaded = line.plugin = Load(config.arbiter, MSFRS_SCHED, line.place);
    if (line.plugin)
        Try(config, line.place);
    for (auto other = links->begin() + 1; line.plugin && other != links->end(); ++other) {
        auto configOfOther = requestConfig(**other);
        configOfOther.admission = config.admission;
        Try(configOfOther, (*other)->place);
    }
    if (!admission)
        return;
    config.admission = chosen;
    config.admission.loaded = admission->plugin = Load(chosen, MSFRS_AQM, admission->place);
    if (line.plugin && admission->plugin)
        Try(config, admission->place);
}

void
Configuration::checkQuotas() const
{
    const auto quotas = quotaClasses();
    if (const auto fault = CheckQuotas(quotas))
        (*classes)[fault->cls]->place.refuse(fault->sentence);
    for (size_t i = 0; i < quotas.size(); ++i) {
        if (quotas[i].bytes == 0)
            continue;
        if (!quotaFile)
            (*classes)[i]->place.warn("all users begin from 0 when Squid is started again; add a line such as "
                                      "msfrs_quota_file /var/spool/squid/msfrs-quota");
        break; // one warning is enough
    }
}

std::vector<QuotaClass>
Configuration::quotaClasses() const
{
    std::vector<QuotaClass> quotas;
    for (const auto line: classes ? *classes : ClassLines())
        quotas.push_back(line->quota());
    return quotas;
}

std::string
Configuration::quotaPath() const
{
    return quotaFile ? quotaFile->path : std::string();
}

RequestConfig
Configuration::requestConfig(const Link &link, const RequestConfig * const running) const
{
    RequestConfig config;
    // A worker that cannot share the link gets its part of the rate, and has to count the bytes that it carries itself,
    // as the interface counts those of all workers.
    const auto parts = UsingSmp() && !SharesLink() ? std::max(Config.workers, 1) : 1;
    config.rate = Value<double>(&link, Table::Link::Rate) / parts;
    config.bounds = {Value<double>(&link, Table::Link::Min) / parts, Value<double>(&link, Table::Link::Max) / parts};
    if (parts == 1)
        config.interface = InterfaceOf(link);
    config.overhead = Value<double>(&link, Table::Link::Overhead);
    config.packetOverhead = Value<uint32_t>(&link, Table::Link::PacketOverhead);
    config.rtt = Value<msfrs_time>(&link, Table::Link::Rtt);
    config.window.law = Value<double>(window, Table::Window::Law) > 0 ? WindowLaw::Bytes : WindowLaw::Paper;
    config.window.target = Value<double>(window, Table::Window::Target);
    config.window.interval = Value<msfrs_time>(window, Table::Window::Interval);
    config.window.growth = Value<double>(window, Table::Window::Growth);
    config.window.reserve = Value<double>(window, Table::Window::Reserve);
    config.window.floor = Value<double>(window, Table::Window::Floor);
    config.patience = Value<msfrs_time>(window, Table::Window::Patience);
    config.quantum = quantum ? quantum->bytes : static_cast<int64_t>(Table::Quantum::Value.byDefault);
    config.maxWait = Value<msfrs_time>(queue, Table::Queue::MaxWait);
    config.maxPerUser = Value<uint32_t>(queue, Table::Queue::MaxPerUser);
    config.maxQueued = Value<uint32_t>(queue, Table::Queue::MaxQueued);
    if (classes) {
        for (const auto line: *classes) {
            if (line->isDefault())
                config.defaultClass = config.classes.size();
            config.classes.push_back({line->name, line->weight()});
        }
    }
    if (arbiter)
        config.arbiter = Choice(*arbiter);
    else if (toggle)
        config.arbiter.loaded = toggle->plugin;
    if (admission)
        config.admission = Choice(*admission);
    if (running && !config.arbiter.loaded)
        config.arbiter = running->arbiter;
    if (running && !config.admission.loaded && config.admission.name != "none")
        config.admission = running->admission;
    return config;
}

} // namespace msfrs::squid
