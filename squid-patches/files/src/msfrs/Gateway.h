/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_GATEWAY_H
#define SQUID_SRC_MSFRS_GATEWAY_H

#include "comm/forward.h"
#include "msfrs/forward.h"
#include "msfrs/lib/engine/request_scheduler.h"
#include "msfrs/lib/neighbour/neighbours.h"
#include "msfrs/QuotaBook.h"
#include "msfrs/reading/ServerReading.h"
#include "msfrs/RefusalLog.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace msfrs::squid
{

class Routes;

/// The scheduling of a Squid process: the schedulers of its links, their timer, and what all tickets share.
class Gateway
{
public:
    /// Starts, changes or ends scheduling by Config.msfrs. To be called after squid.conf was read, at startup
    /// and at reconfiguration. Exits if the scheduler cannot start at startup; keeps the running one if it
    /// cannot change later.
    static void Configure();

    /// Ends scheduling before Squid exits. Requests that still wait are no longer answered.
    static void Shutdown();

    /// \throws ConfigError
    Gateway();
    ~Gateway();

    Gateway(Gateway &&) = delete; // no copying or moving of any kind

    using Uplinks = std::vector<std::unique_ptr<Uplink>>;

    /// the links, in the order of squid.conf; at least one
    const Uplinks &uplinks() const { return uplinks_; }

    /// whether there are several
    bool several() const { return routes_ != nullptr; }

    /// The link of a connection to a server, open or not; nil: the server is not known yet.
    /// \returns nil if it leaves by none of several, or this is not known
    Uplink *uplinkOf(const Comm::Connection *server) const;

    /// The local address that a new connection would have; only if there are several links.
    Ip::Address sourceOf(const Comm::Connection &) const;

    /// The hardware address of a client on a network of this machine, if msfrs_user is mac.
    /// \returns nothing if the kernel does not know it
    std::optional<MacAddress> hardwareAddressOf(const HostAddress &);

    /// monotonic clock, ns; never negative, never goes back
    static msfrs_time Now();

    /// logs a message of the scheduler or its parts; level as in RequestHost
    static void Log(int level, const std::string &message);

    /// sets the timer, unless it is due earlier
    void wakeBy(msfrs_time when) { if (when < nextTick_) arm(when); }

    /// Makes up for a late timer: Squid's events follow the wall clock, which may be set back.
    void keepTime();

    /// Moves each ticket to the class where its user belongs. To be called when the quotas have changed that, and not
    /// from inside an attempt().
    void moveByQuota();

    /* shared by tickets */
    QuotaBook quotas;
    ServerReadings readings;
    RefusalLog refusals{"request"};
    std::mt19937_64 random;

private:
    void change();
    template <class Method> void each(Method);
    void tick();
    void checkBatches();
    void arm(msfrs_time when);
    static void Tick(void *);

    std::unique_ptr<Routes> routes_; ///< nil with one link
    std::unique_ptr<Neighbours> neighbours_; ///< nil unless a user is a hardware address
    Uplinks uplinks_;
    bool accessChanged_ = false; ///< tickets may belong to other classes
    msfrs_time nextTick_ = 0;
    msfrs_time nextBatchCheck_ = 0;
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_GATEWAY_H */
