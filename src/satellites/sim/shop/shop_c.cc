// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The shop for Python's ctypes (papers/shop.py). Not installed. A call that fails returns 0 and the reason in err.
#include "satellites/sim/shop/shop.h"

#include <cstdio>
#include <sstream>

namespace {

using namespace msfrs;

struct Row {
    int64_t flow, arrived, start, finish, times[MSFRS_RESOURCES];
};

struct Handle {
    sim::Shop shop;
    std::vector<Row> rows; ///< of the latest run
};

std::vector<Setting> Settings(const char *const text)
{
    std::vector<Setting> all;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        if (equals == std::string::npos)
            throw ConfigError("'" + word + "': expected name=value");
        all.push_back({word.substr(0, equals), word.substr(equals + 1)});
    }
    return all;
}

sim::Need NeedOf(const int64_t *const est)
{
    sim::Need need;
    std::copy_n(est, need.size(), need.begin());
    return need;
}

} // namespace

extern "C" {

/// \param resources 1..4, the link included; \param rate bit/s
Handle *shop_new(const char *const dir, const char *const scheduler, const char *const settings,
                 const uint32_t resources, const int64_t rate, char *const err, const size_t errlen)
{
    try {
        if (resources < 1 || resources > MSFRS_RESOURCES || rate < 1)
            throw ConfigError("a shop has 1 to 4 resources and a rate above 0");
        const auto h = new Handle{{LoadPlugin(scheduler, MSFRS_SCHED, dir), Settings(settings), resources, rate}, {}};
        h->shop.served = [h](const sim::Visit &v) {
            Row row{v.flow, v.arrived, v.start, v.finish, {}};
            std::copy(std::begin(v.times.on), std::end(v.times.on), row.times);
            h->rows.push_back(row);
        };
        return h;
    } catch (const std::exception &e) {
        std::snprintf(err, errlen, "%s", e.what());
        return nullptr;
    }
}

void shop_free(Handle *const h) { delete h; }
uint32_t shop_flow(Handle *const h, const double weight) { return h->shop.addFlow(weight); }
void shop_weight(Handle *const h, const uint32_t flow, const double weight) { h->shop.setWeight(flow, weight); }
void shop_keep(Handle *const h, const uint32_t flow, const int64_t *const est, const uint32_t depth)
{
    h->shop.keep(flow, NeedOf(est), depth);
}
void shop_arrive(Handle *const h, const uint32_t flow, const int64_t when, const int64_t *const est)
{
    h->shop.arrive(flow, when, NeedOf(est));
}

/// \returns the number of rows of eight 64-bit integers at *rows, valid until the next call: flow, arrival, start,
/// finish, and the time on each resource, in units of 10^-4 microseconds
uint64_t shop_run(Handle *const h, const int64_t until, const uint64_t packets, const int64_t **const rows)
{
    h->rows.clear();
    h->shop.run(until, packets);
    *rows = h->rows.empty() ? nullptr : &h->rows.front().flow;
    return h->rows.size();
}

} // extern "C"
