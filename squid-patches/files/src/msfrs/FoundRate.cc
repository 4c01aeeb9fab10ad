/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/FoundRate.h"

#include <string>

namespace msfrs::squid
{

void
CheckFoundRate(const Configuration &config, const Link &link)
{
    using namespace Table::Link;
    const auto &options = link.options;
    if (!link.isAuto()) {
        for (const auto spec: {&Min, &Max}) {
            if (options.has(*spec))
                link.place.refuse(std::string(spec->name) + "= is only for rate=auto; leave it out with rate=" +
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

} // namespace msfrs::squid

