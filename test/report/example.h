// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A gateway that has every figure; gateway.yaml and gateway.metrics are its report.
#pragma once

#include "report/snapshot.h"

namespace msfrs::test {

inline report::Snapshot Example()
{
    constexpr msfrs_time Second = 1'000'000'000;
    report::Snapshot s;
    s.scheduling = true;
    s.now = 1000 * Second;
    s.config.rate = 20e6;
    s.config.interface = "eth1";
    s.config.classes = {{"gold", 4}, {"bulk \"b\"", 0.5}};
    s.config.defaultClass = 1;
    s.config.admission = {"faba", {{"limit", "200"}}};
    auto &w = s.window;
    w.holding = true;
    w.because = "2 wait and the window is full";
    w.outstanding = 3;
    w.limit = 3.5;
    w.utilisation = 0.98765;
    w.own = 0.9;
    w.queue = 0.03125;
    w.base = 0.04;
    w.queueTarget = 0.03;
    w.metered = true;
    w.usedWhileFull = 0.99;
    w.full = 123.4567;
    w.carriedWhileFull = 3e8;
    w.history = {{998, 3, 3.25, 0.9, 1, -1}, {999.5, 2, 3.5, 0.95, 0, 0.9}};
    w.capacity = CapacityReport();
    w.capacity->params = {1e6, 40e6};
    w.capacity->delivered = 19.5e6;
    w.capacity->loss = 0.0125;
    w.capacity->queue = 0.0312;
    w.capacity->ignored = 0.0021;
    w.capacity->limited = true;
    w.capacity->known = 3600;
    w.capacity->mostly = 15e6;
    w.capacity->half = 19e6;
    w.capacity->changes = {{970 * Second, 18e6, 20e6, CapacityReason::Carried},
                           {990 * Second, 20e6, 19e6, CapacityReason::Queue}};
    s.excess = {12, 3456, 78, 9};
    s.excessSocket = "/run/msfrs/excess";
    ClassReport gold;
    gold.name = "gold";
    gold.weight = 4;
    gold.users = 2;
    gold.queued = 1;
    gold.paused = 1;
    gold.inFlight = 3;
    gold.asked = 1;
    gold.resting = 5;
    gold.exchanges = 60;
    gold.requests = 70;
    gold.bytes = 123'456'789;
    gold.quanta = 800;
    gold.refusedPerUser = 1;
    gold.refusedTotal = 2;
    gold.refusedAdmission = 3;
    gold.expired = 4;
    gold.excess = 999;
    gold.service = 1.5e7;
    gold.heldP50 = 0.125;
    gold.heldP95 = 1.25;
    gold.heldP99 = 2.5;
    gold.heldLately = 30;
    gold.bytesLately = 2e6;
    gold.heldCount = 130;
    gold.heldSum = 45.5;
    gold.unfinished = 6e9;
    ClassReport bulk;
    bulk.name = "bulk \"b\"";
    bulk.weight = 0.5;
    s.classes = {gold, bulk};
    s.quotas.resize(2);
    s.quotas[0] = {5'000'000'000, QuotaPeriod::Day, bulk.name, 7300, 3, 1, 2,
                   {{"10.0.0.1", 6'000'000'000}, {"x\\ \xE2\x80\xAE<b>\xFF", 70}}};
    s.held = {{"x\\ \xE2\x80\xAE<b>\xFF", "gold", "", 2, HeldReport::What::Response, 18},
              {"10.0.0.1", "gold", "a.example", 0.25, HeldReport::What::Request, 17}};
    s.users = {{"10.0.0.1", "gold", 123'456, 1, 2}, {"2001:db8::/64", "bulk \"b\"", 99, 0, 1}};
    s.parties = {{0, "worker", true, true, 321, 77, 3, 2, 8, 0.8}, {1, "worker", false, false, 0, 0, 0, 0, 0, 0},
                 {2, "edge", true, false, 654, 78, 0, 0, 2, 0.2}};
    s.alone = "since \"x\"";
    return s;
}

} // namespace msfrs::test
