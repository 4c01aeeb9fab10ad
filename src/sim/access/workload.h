// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The users' requests: the field trial's backlogged, open and pages workloads, with the same distributions, and a
/// burst. Each user has a random generator of its own, so that every variant of a run gets the same requests.
#pragma once

#include "sim/access/gateway.h"

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace msfrs::sim::access {

/// The field trial's distributions from the bits of a mt19937_64; those of the standard libraries differ.
class Draws {
public:
    Draws(uint64_t seed, std::string_view name);
    double uniform();               ///< in [0, 1)
    double exponential();           ///< of mean 1
    msfrs_time firstByte(msfrs_time median, double sigma); ///< lognormal, ns
    double normal();                ///< of mean 0 and deviation 1
    uint32_t below(uint32_t n);     ///< 0..n-1
    /// exp(N(9.357, 1.318^2)) bytes, at most `cap`, on the trial's grid of steps of 2 %: mean 27.6 kB.
    int64_t size(double cap);

private:
    std::mt19937_64 bits_;
};

/// Bytes of an answer's frames on the link.
int64_t WireBytes(int64_t body);

/// Name of a user by class and number in it, both from 0.
std::string UserName(uint32_t cls, uint32_t n);

/// A future request.
struct Arrival {
    double t;                       ///< s
    uint32_t user;                  ///< among all
    uint32_t server;
    int64_t size;                   ///< bytes of the body
};

struct WorkloadParams {
    enum class Kind { Backlogged, Open, Pages, Burst, Recorded };
    Kind kind = Kind::Backlogged;
    uint32_t inFlight = 4;          ///< Backlogged: requests of every user at a time, >= 1
    double load = 0.95;             ///< Open: share of C, > 0
    uint32_t objects = 12, connections = 6; ///< Pages: of a page, >= 1; of them at a time, >= 1
    uint32_t blocking = 4;          ///< Pages: a page paints once its first so many objects have arrived; >= 1
    uint32_t hosts = 1;             ///< Pages: servers of a page's objects, in turn, >= 1
    uint32_t burst = 1000;          ///< Burst: requests at once, of each user to the servers in turn
    double burstAt = 1;             ///< Burst: when, s >= 0
    bool opened = false;            ///< Burst: a small request precedes each, so that there is a tunnel
    double think = 5;               ///< Pages: mean pause between two pages of a user, s
    std::vector<Arrival> recorded;  ///< Recorded: all requests
    bool ownServers = false;        ///< Backlogged: user n always uses server n, and not a random one
    int64_t fixedSize = 0;          ///< bytes of every answer; 0: lognormal
    /// Time between a request and the first byte of its answer at the server: median, ns >= 0, and the deviation of its
    /// logarithm. 0: every server answers at once. The same for the same request in every variant of a run.
    msfrs_time firstByte = 0;
    double firstByteSigma = 1.2;
    /// Requests to servers that never answer, as a share of the others, 0..1. Nobody waits for these, and they are in no
    /// figure: a page may name a server that is blocked or gone.
    double silent = 0;
    std::vector<uint32_t> users;    ///< in each class
    /// Backlogged: in which of `parts` equal parts of the run a class is active: bit n for part n. Empty: always.
    std::vector<uint32_t> active;
    uint32_t parts = 1;
};

/// A request or a page, and its result. Times in s.
struct Record {
    uint32_t cls, user;             ///< user: among all
    int64_t size;                   ///< bytes of bodies
    double wanted, ended = -1;      ///< -1: it has not
    bool refused = false;
    bool page = false;
    double painted = -1;            ///< of a page; -1: it has not
};

/// Sends a request to a gateway.
using Fetch = std::function<void(const Wish &, Watcher)>;

class Workload {
public:
    /// \param seconds for which requests are made
    Workload(Clock &, Fetch, const WorkloadParams &, uint32_t servers, double rate, double seconds, uint64_t seed);
    ~Workload();

    const std::vector<Record> &records() const { return records_; }
    /// Called with user and bytes of bodies as they arrive.
    std::function<void(uint32_t cls, uint32_t user, int64_t bytes)> received;
    /// Called with the bytes of a new request, and with those missing from one that has ended.
    std::function<void(int64_t bytes)> asked, ended;

private:
    struct User {
        uint32_t cls, number;
        std::string name;
        Draws draws;
        Draws servers;              ///< how long they take
    };
    struct Page;

    void fetch(User &, uint32_t server, int64_t size, std::function<void(bool refused)> then);
    void keepAsking(User &);
    std::vector<Arrival> drawArrivals(uint64_t seed);
    std::vector<Arrival> drawBurst(uint64_t seed);
    void browse(User &);
    void object(User &, const std::shared_ptr<Page> &);
    void paint(Page &, uint32_t object);
    int64_t size(Draws &) const;
    bool active(const User &) const;

    Clock &clock_;
    Fetch fetch_;
    WorkloadParams params_;
    uint32_t servers_;
    double rate_, seconds_;
    std::vector<std::unique_ptr<User>> users_;
    std::vector<Record> records_;
};

} // namespace msfrs::sim::access
