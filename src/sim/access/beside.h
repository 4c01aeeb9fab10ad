// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Requests beside the workload that use slots and little of the link: to servers that never answer, as of a worm or of
/// an app whose servers are blocked; to servers that take long to answer; and streams of a constant rate in TLS, such as
/// calls over TCP, remote desktops and WebSockets. All are of users of their own in the last class.
#pragma once

#include "sim/access/http2_session.h"

namespace msfrs::sim::access {

struct BesideParams {
    double silent = 0;               ///< requests a second to servers that never answer
    uint32_t silentUsers = 1;        ///< who send these, in turn, >= 1
    double thinking = 0;             ///< requests a second to servers that answer after `thinks`, with 1000 bytes
    msfrs_time thinks = 2 * Second;  ///< ns >= 0
    uint32_t streams = 0;            ///< each of its own user and in its own tunnel
    double streamRate = 48e3;        ///< bit/s of each, > 0
};

class Beside {
public:
    /// Sends a request to a gateway.
    using Fetch = std::function<void(const Wish &, Watcher)>;

    /// \param cls of all users
    /// \param servers number of them
    /// \param seconds for which requests are made, and streams last
    Beside(Clock &, Fetch, Clients &, const BesideParams &, uint32_t cls, uint32_t servers, double seconds);

private:
    void ask(double rate, msfrs_time thinks, uint32_t users, uint64_t number);

    Clock &clock_;
    Fetch fetch_;
    const BesideParams params_;
    const uint32_t cls_, servers_;
    const double seconds_;
};

} // namespace msfrs::sim::access
