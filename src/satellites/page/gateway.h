// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The state of the gateway according to the metrics, and the rates between two polls.
#pragma once

#include "satellites/page/openmetrics.h"

#include <array>
#include <optional>

namespace msfrs::page {

constexpr std::array<const char *, 4> Refusals = {"per_user", "total", "admission", "max_wait"};

/// A class. Counts are since the start of Squid's scheduler; with several workers they are sums, and weight and times
/// held are the maximum.
struct ClassState {
    std::string name;
    double weight = 0;
    double users = 0;                    ///< with a request queued or in service
    double queued = 0, paused = 0, inFlight = 0, asked = 0, silent = 0;
    double requests = 0, exchanges = 0;
    double bytes = 0, excess = 0;        ///< of responses; without a request
    std::array<double, Refusals.size()> refused{};
    double heldP50 = 0, heldP95 = 0, heldP99 = 0; ///< s, of an exchange, over the last five to ten minutes
    double heldSum = 0;                  ///< s, of all exchanges

    double waiting() const { return queued + paused; }
    /// Responses: of requests, and of the later exchanges of kept connections.
    double responses() const { return requests + exchanges; }
    double refusals() const
    {
        double sum = 0;
        for (const auto count : refused)
            sum += count;
        return sum;
    }
};

/// The gateway. With several workers W, W+ and the share of responses are sums, the link's figures the maximum; with
/// several links their capacity is a sum, too.
struct GatewayState {
    double workers = 0;           ///< that report; 0: Squid has no scheduler
    bool scheduling = false, holding = false, metered = false;
    double capacity = 0;          ///< bit/s
    double utilisation = 0, target = 0; ///< U, U+
    std::optional<double> own;    ///< share of the link used by responses
    std::optional<double> queue, base; ///< s: queueing delay at the provider; base RTT
    double outstanding = 0, limit = 0; ///< W, W+
    double excessLines = 0, excessRefused = 0, noClassBytes = 0;
    std::vector<ClassState> classes;

    const ClassState *find(std::string_view name) const;
    double waiting() const;
    /// bit/s for one user of the class by weight, assuming that all active users are backlogged.
    double fairShare(const ClassState &) const;
};

constexpr size_t MostClasses = 1024;

/// \throws PageError more than MostClasses
GatewayState StateOf(const std::vector<Sample> &);

/// Rates of a class between two polls.
struct ClassFlow {
    double rate = 0, excess = 0;     ///< bit/s
    double responses = 0;            ///< per second
    double refused = 0;              ///< requests per second
    std::optional<double> meanSize;  ///< bytes of a response; nothing: no response
    std::optional<double> heldPerMegabyte; ///< s for a million bytes; nothing: no response
};

struct Flow {
    double noClass = 0;              ///< bit/s of receivers without a class
    std::vector<ClassFlow> classes;  ///< in the order of GatewayState::classes
};

/// The difference of two states that are `seconds` apart. Counters that a restart of Squid has reset are counted from
/// 0; a class that did not exist before has no flow yet.
Flow FlowBetween(const GatewayState &before, const GatewayState &after, double seconds);

/// The growth of a counter; one that fell was reset.
inline double Grown(const double before, const double after) { return after >= before ? after - before : after; }

} // namespace msfrs::page
