// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The report of a running daemon: as text, and as OpenMetrics.
#pragma once

#include "edge/daemon/config.h"
#include "edge/daemon/counters.h"
#include "edge/daemon/excess.h"
#include "edge/daemon/found_rate.h"

#include <memory>
#include <string>
#include <vector>

namespace msfrs::edge {

/// A gauge of a plugin.
struct GaugeValue {
    std::string plugin; ///< "scheduler" or "aqm"
    std::string name, unit;
    size_t cls = NoClass; ///< of a class; NoClass: of the whole
    size_t queue = 0;     ///< index of the thread
    double value = 0;
};

/// A snapshot of all figures.
struct Report {
    std::shared_ptr<const Config> config;
    std::string file;
    double upSeconds = 0;
    uint64_t reloads = 0, reloadFailures = 0;
    std::vector<ClassCounts> classes; ///< as in Config::classes
    std::vector<QueueCounts> queues;  ///< by thread
    std::vector<size_t> flows;        ///< by thread
    bool conntrack = false;
    std::vector<GaugeValue> gauges;
    std::optional<Excess::Counts> excess; ///< nothing: no reports to Squid
    bool party = false;               ///< of a ledger
    std::optional<FoundReport> found; ///< nothing: the rate is not estimated
    int64_t share = 0;                ///< as a party: rate for packets, bit/s; 0: Squid publishes no rate
};

std::string Text(const Report &);
/// https://prometheus.io/docs/specs/om/open_metrics_spec/
std::string OpenMetrics(const Report &);

/// The kernel's own counts of a queue. \param table the content of /proc/net/netfilter/nfnetlink_queue
void ReadKernelCounts(const std::string &table, uint32_t number, QueueCounts &);

} // namespace msfrs::edge
