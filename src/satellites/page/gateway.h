// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The state of the gateway as the metrics tell it, and what flows from one poll to the next.
#ifndef MSFRS_PAGE_GATEWAY_H
#define MSFRS_PAGE_GATEWAY_H

#include "satellites/page/openmetrics.h"

#include <array>
#include <optional>

namespace msfrs::page {

constexpr std::array<const char *, 4> Refusals = {"per_user", "total", "admission", "max_wait"};

/// A class. Counts are since Squid's scheduler started; with several workers they are sums, and weight and times held
/// the largest.
struct ClassState {
    std::string name;
    double weight = 0;
    double users = 0;                    ///< with a request queued or in service
    double queued = 0, paused = 0, inFlight = 0, asked = 0, silent = 0;
    double requests = 0, exchanges = 0;
    double bytes = 0, excess = 0;        ///< of responses; that no request caused
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

/// The gateway. With several workers W and W+ and the share of responses are sums, the link's figures the largest.
struct GatewayState {
    double workers = 0;           ///< that say anything; 0: Squid has no scheduler
    bool scheduling = false, holding = false, metered = false;
    double capacity = 0;          ///< bit/s
    double utilisation = 0, target = 0; ///< U, U+
    std::optional<double> own;    ///< share of the link that responses had
    std::optional<double> queue, base; ///< s: what the queue at the provider adds to round trips; these without it
    double outstanding = 0, limit = 0; ///< W, W+
    double excessLines = 0, excessRefused = 0, noClassBytes = 0;
    std::vector<ClassState> classes;

    const ClassState *find(std::string_view name) const;
    double waiting() const;
    /// bit/s for one user of the class by weight, if all who want anything now want as much as they can get.
    double fairShare(const ClassState &) const;
};

constexpr size_t MostClasses = 1024;

/// \throws PageError more than MostClasses
GatewayState StateOf(const std::vector<Sample> &);

/// What flowed through a class between two polls.
struct ClassFlow {
    double rate = 0, excess = 0;     ///< bit/s
    double responses = 0;            ///< a second
    double refused = 0;              ///< requests a second
    std::optional<double> meanSize;  ///< bytes of a response; nothing: there was none
    std::optional<double> heldPerMegabyte; ///< s for a million bytes; nothing: there was none
};

struct Flow {
    double noClass = 0;              ///< bit/s of receivers that are of no class
    std::vector<ClassFlow> classes;  ///< as GatewayState::classes
};

/// The difference of two states that are `seconds` apart. What counts from 0 again, since Squid was started again,
/// counts from 0; a class that was not there before has no flow yet.
Flow FlowBetween(const GatewayState &before, const GatewayState &after, double seconds);

/// How much a counter grew; one that fell began anew.
inline double Grown(const double before, const double after) { return after >= before ? after - before : after; }

} // namespace msfrs::page

#endif
