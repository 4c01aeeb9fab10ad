// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A single AQM before a fifo queue, item by item.
#pragma once

#include "support/engine_driver.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

namespace msfrs::test {

class AqmQueue : public Driver {
public:
    /// \param limit the host's limit, in packets; 0: none
    explicit AqmQueue(const std::string &aqm, const uint32_t limit = 0, const uint64_t seed = 1):
        Driver(ParseVariant("fifo"), setup(aqm, limit, seed)) {}

    /// '+' queued, '*' queued and marked, '-' dropped, 'x' dropped with another one
    char offer(msfrs_class &c, const std::string &flow, const int64_t size = 1000)
    {
        const auto before = victims();
        const auto *const t = arrive(c, flow, size);
        return t ? t->marked ? '*' : '+' : victims() > before ? 'x' : '-';
    }
    /// Sends the next n packets. \returns the bytes of the last
    int64_t send(int n = 1)
    {
        int64_t size = 0;
        for (; n > 0 && !queued().empty(); --n) {
            if (auto *const t = pick()) {
                size = t->size;
                finish(*t);
            }
        }
        return size;
    }
    /// Sends the next packet. \returns '!' for each that was dropped at its turn, and 'm' if it was marked then
    std::string turn()
    {
        const auto before = lost();
        auto *const t = queued().empty() ? nullptr : pick();
        auto signs = std::string(lost() - before, '!');
        if (t) {
            signs += t->markedInTurn ? "m" : "";
            finish(*t);
        }
        return signs;
    }
    double gauge(const std::string &name, const msfrs_class *c = nullptr)
    {
        const auto &p = *engine().aqm();
        for (uint32_t n = 0; n < p.n_gauges; ++n) {
            if (name == p.gauges[n].name)
                return engine().aqmGauges(c)[n];
        }
        throw std::invalid_argument("no gauge " + name);
    }

private:
    static Setup setup(const std::string &aqm, const uint32_t limit, const uint64_t seed)
    {
        Setup s;
        s.cost = Engine::Cost::Exact;
        s.aqm = ParseVariant(aqm, MSFRS_AQM);
        s.limit = limit;
        s.seed = seed;
        return s;
    }
};

} // namespace msfrs::test
