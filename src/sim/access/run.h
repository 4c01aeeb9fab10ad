// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A complete run: link, gateway and users, and the measurements.
#pragma once

#include "sim/access/beside.h"
#include "sim/access/others.h"
#include "sim/access/trace.h"
#include "sim/access/work.h"
#include "sim/access/workload.h"

namespace msfrs::sim::access {

/// The field trial's defaults.
struct RunParams {
    double rate = 2e6;              ///< C, bit/s
    std::string trace;              ///< course of C, see MakeTrace(); empty: constant
    double buffer = 1.5;            ///< length of the provider's queue, in C times bufferRtt
    msfrs_time bufferRtt = 154 * Ms; ///< ns
    std::vector<ServerPath> paths;  ///< to the servers
    WorkloadParams workload;
    OthersParams others;            ///< beside the gateway
    BesideParams beside;            ///< beside the workload
    double slice = 10;              ///< s, > 0: length of the slices in which shares are measured
    double seconds = 200, warmup = 60, drain = 0;
    uint64_t seed = 1;
    bool scheduled = true;          ///< false: unmodified Squid
    uint32_t workers = 1;           ///< of the gateway, 1..Columns: each has a scheduler, and all share a ledger
    /// Which of them gets a request: a random one, as with connections; that of its class; that of its user.
    enum class Split { Random, Class, User } split = Split::Random;
    /// How users send requests: by HTTP/1 on connections that the gateway shares; by HTTP/2 in tunnels, a persistent
    /// one for each user and server, or one for each request.
    enum class Traffic { Http1, Tunnels, NewTunnels } traffic = Traffic::Http1;
    uint32_t idle = 0;              ///< further tunnels of each user, without requests
    bool kernelTakesLeast = false;  ///< the gateway runs Linux 6.16 or later: see Receiver::takeLeast()
    RequestConfig config;           ///< its interface is the link, and its rate, if 0, `rate`

    RunParams();                    ///< twelve servers of 12 to 296 ms, four users in each of gold, silver, bronze
};

/// Of requests, or of pages if there are any: those made in the measured time. One that has not ended counts with the
/// time up to the end of the run.
struct Latency {
    size_t count = 0, unfinished = 0;
    double mean = 0, p95 = 0, p99 = 0; ///< s
};

struct RunResult {
    std::vector<double> perUser;    ///< of each class: bytes of bodies that a user received in the measured time
    std::vector<double> userError;  ///< of each class: largest relative deviation of a user from its mean
    double utilisation = 0;         ///< share of C in the measured time; of its mean with a trace
    double found = 0;               ///< mean of the gateway's estimate of C over the mean of C
    double others = 0;              ///< part of that which did not pass the gateway
    double sliceError = 0;          ///< relative standard deviation of the bytes of a class in a slice, root mean
                                    ///< square over the classes
    double queueMean = 0, queueP95 = 0; ///< at the provider, s
    double dropped = 0;             ///< share of the frames, in the measured time
    Latency all;
    std::vector<Latency> classes;
    double unfinished = 0, whileAsked = 0; ///< see Work, bytes and a share of C
    double unfinishedSeen = 0;      ///< as `unfinished`, as reported by the schedulers
    double smallMean = 0;           ///< s: requests of up to 16 KB
    std::vector<double> heldP95;    ///< of each class, s: as the first worker's scheduler reports it
    std::vector<double> paint;      ///< of each class, s: mean time until a page paints
    struct Rates { double believed, carries; };
    std::vector<Rates> rates;       ///< the gateway's estimate of C, and C in the second before, bit/s, one a second
    double inService = 0;           ///< mean of W over the measured time
    std::vector<WindowReport::Sample> window; ///< the course of W+, one an interval
    std::vector<std::vector<double>> parts;   ///< bytes per user of each class in each part of the run (Backlogged)
    uint64_t retransmitted = 0, timeouts = 0; ///< total, of the servers
    int64_t carried = 0, received = 0;        ///< total bytes: by the link, and of responses by the users
    std::string log;                ///< log of the scheduler
};

/// Makes `count` of the paths, evenly spread, longer by `jump` in every other `every`, ns.
void LetJump(std::vector<ServerPath> &, size_t count, msfrs_time jump, msfrs_time every);

/// \throws ConfigError
RunResult Simulate(const RunParams &);

} // namespace msfrs::sim::access
