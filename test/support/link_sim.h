// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A request scheduler before a link, in simulated time. The link's capacity C, less what other traffic takes, is
/// shared equally among the responses in service (processor sharing), and no response exceeds its own rate limit. That
/// limit stands for the rest of the path through the Internet: without it a single response fills the link, and no
/// window is needed.
#pragma once

#include "engine/request_scheduler.h"
#include "sim/link/clock.h"
#include "support/fake_interface.h"
#include "support/host.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace msfrs::test {

struct Transfer;

struct LinkOptions {
    double perResponse = std::numeric_limits<double>::infinity(); ///< bit/s, limit of one response
    msfrs_time latency = 0;      ///< from release to the first byte
    int64_t piece = 1000;        ///< bytes that arrive and are charged at a time
    int64_t packet = 1500;       ///< bytes in a packet of the link
    uint32_t fixedWindow = 0;    ///< constant value of W+; 0: set by the rate controller
    uint64_t seed = 1;
    int64_t (*says)(const Transfer &) = nullptr; ///< bytes remaining that the server states with each piece; null: none
};

/// Brings an idle scheduler to W+ = wplus by the rate controller's own rule (an interval with a full window in which
/// nothing arrived, or too much), and keeps it there by an endless interval. Takes 1 ns. The scheduler's host must be
/// Host::requests().
void FixWindow(RequestScheduler &, uint32_t wplus, msfrs_time now);

/// A request and its result.
struct Transfer {
    uint32_t cls = 0;
    std::string user;
    int64_t size = 0, received = 0;
    msfrs_time arrived = -1, granted = -1, ended = -1; ///< -1: not (yet)
    uint32_t grants = 0;
    bool expired = false, aborted = false;
    Refusal refusal = Refusal::None;
};

class LinkSim {
public:
    /// config.interface, if set, is created, and counts the bytes of the link.
    LinkSim(const RequestConfig &config, const LinkOptions &options);
    ~LinkSim();
    LinkSim(const LinkSim &) = delete;
    LinkSim &operator=(const LinkSim &) = delete;

    /// Runs `what` at time t.
    void at(const msfrs_time t, std::function<void()> what) { clock_.at(t, std::move(what)); }
    /// Other traffic on the link in bit/s, from now on.
    void setCbr(double rate);
    /// A request now. `onEnd` is called when it ends for any reason.
    /// \returns its number in transfers()
    size_t arrive(uint32_t cls, const std::string &user, int64_t size,
                  std::function<void(const Transfer &)> onEnd = {});
    /// The client disconnects.
    void abort(size_t number);
    /// Advances the time.
    void run(msfrs_time until);
    /// Advances the time until every request has ended.
    void runOut();

    msfrs_time now() const { return clock_.now(); }
    RequestScheduler &scheduler() { return *scheduler_; }
    Host &host() { return host_; }
    const std::vector<Transfer> &transfers() const { return transfers_; }
    size_t open() const { return owners_.size(); }    ///< requests that have not ended
    double carried() const { return carried_; }       ///< bytes, other traffic included
    int64_t bytes(uint32_t cls) const;                ///< of responses, since the start
    int64_t bytes(uint32_t cls, const std::string &user) const;
    /// Called after every piece that arrives, with the class and its bytes.
    std::function<void(uint32_t cls, int64_t bytes)> onPiece;

private:
    struct Owner;
    struct Due {
        double target; ///< of the service that each response has received since the start
        uint64_t order;
        Owner *owner;
        bool operator<(const Due &o) const { return target != o.target ? target < o.target : order < o.order; }
    };

    double rateOfOne() const;
    void pass(msfrs_time until);
    msfrs_time nextPiece() const;
    void expectPiece(Owner &, double from);
    void deliver(Owner &);
    void end(Owner &);
    bool step(msfrs_time until);

    sim::Clock clock_;
    Host host_;
    LinkOptions options_;
    double rate_;
    double cbr_ = 0, carried_ = 0, each_ = 0; ///< each_: bytes that each response in service has received since start
    std::unique_ptr<FakeInterface> interface_;
    std::unique_ptr<RequestScheduler> scheduler_;
    std::vector<Transfer> transfers_;
    std::map<size_t, std::unique_ptr<Owner>> owners_;
    std::set<Due> due_;
    std::map<uint32_t, std::map<std::string, int64_t>> bytes_;
    uint64_t order_ = 0;
    msfrs_time nextTick_ = 0;
};

} // namespace msfrs::test
