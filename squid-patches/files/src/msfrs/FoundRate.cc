/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/FoundRate.h"
#include "msfrs/Report.h"
#include "msfrs/Yaml.h"

#include "window/capacity.h"

#include <ostream>
#include <string>

namespace msfrs::squid
{

void
CheckFoundRate(const Configuration &config)
{
    using namespace Table::Link;
    const auto &link = *config.link;
    const auto &options = link.options;
    if (!link.isAuto()) {
        for (const auto spec: {&Min, &Max}) {
            if (options.has(*spec))
                link.place.refuse(std::string(spec->name) + "= is for rate=auto alone; leave it out with rate=" +
                                  options.text(Rate));
        }
        return;
    }
    if (!options.has(Min) || !options.has(Max))
        link.place.refuse("rate=auto needs min= and max=, between which the rate is looked for; give both, as in "
                          "rate=auto min=2Mbit max=80Mbit interface=eth1");
    if (options.number(Min) > options.number(Max))
        link.place.refuse("min=" + options.text(Min) + " is above max=" + options.text(Max) +
                          "; give a min= that is not");
    if (!options.has(Interface))
        link.place.refuse("rate=auto needs interface=, whose counter tells what the link brings; give it, as in "
                          "interface=eth1");
    if (config.quantum && config.quantum->bytes == 0)
        config.quantum->place.refuse("none is not possible with rate=auto, as nothing then bounds the bytes in flight; "
                                     "give a size, as in 16 KB");
}

/// rates for an administrator who wants to set one: reached nine tenths of the time, and half of it
static std::string
Advice(const CapacityReport &found)
{
    constexpr double Enough = 600; // s
    if (found.known < Enough)
        return "null";
    return Quoted("rate=" + Fixed(found.mostly/1e3, 0) + "kbit was there nine tenths of the time and " +
                  Fixed(found.half/1e3, 0) + "kbit half of it, of the " + Fixed(found.known/3600, 1) +
                  " h of the last day in which somebody waited");
}

void
PrintFoundRate(std::ostream &os, const CapacityReport &found, const msfrs_time now)
{
    os << "  auto: # how rate was found\n"
       "    min: " << Fixed(found.params.min, 0) << "\n"
       "    max: " << Fixed(found.params.max, 0) << "\n"
       "    delivered: " << Fixed(found.delivered, 0) << " # what came over the link, of late\n"
       "    limited: " << (found.limited ? "true" : "false") << " # somebody waits; without, rate can only grow\n"
       "    queue: " << (found.queue < 0 ? "null" : Fixed(found.queue, 4)) << " # at the provider, of late\n"
       "    longer: " << Fixed(found.ignored, 4) << " # what round trips are longer by that is no queue\n"
       "    out_of_order: " << Fixed(found.loss, 4) << " # share of packets of the last second; losses make that\n"
       "    advice: " << Advice(found) << " # what to set who wants a fixed rate; null: too little was seen\n"
       "    # the latest last\n"
       "    changes:" << (found.changes.empty() ? " []\n" : "\n");
    for (const auto &change: found.changes) {
        os << "      - {ago: " << Fixed((now - change.at)*1e-9, 1) << ", from: " << Fixed(change.from, 0) <<
           ", to: " << Fixed(change.to, 0) << ", because: " << Quoted(CapacityReasonText(change.why)) << "}\n";
    }
}

} // namespace msfrs::squid

