// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The rate of a downlink that nobody knows (`link rate=auto`): what Capacity finds from the packets that pass, and the
/// pace that lets it find it.
///
/// D is what comes from the provider, before it waits here. Round trips are those of the users' connections, see
/// RoundTrips. Limited: packets wait here. Squid bounds bytes in flight; here the senders do, and they send as fast
/// as packets leave here once those wait. So the pace is C, but
/// - 5 % more while no queue stands at the provider, or D never could be more than C;
/// - 5 % less where half of the queue stands there that may, and 30 to 50 % less than C and than D while a long one
///   does: it gets empty, and stands here instead, where the scheduler and the AQM decide on it;
/// - half of it for 300 ms, after the first second and then every 20 s, unless a long queue stands: a queue that was
///   there whenever a round trip was seen is part of the least ones, and would stay for good (as BBR does; Cardwell et
///   al., CACM 60(2), 2017).
/// Capacity's limited is also that a queue stands at the provider while D is at least 70 % of C: a C that is too high
/// lets nothing wait here.
#ifndef MSFRS_EDGE_DAEMON_FOUND_RATE_H
#define MSFRS_EDGE_DAEMON_FOUND_RATE_H

#include "edge/daemon/rate_source.h"
#include "edge/daemon/round_trips.h"
#include "window/capacity.h"
#include "window/queue_estimate.h"

namespace msfrs::edge {

/// What is believed of the link, and why.
struct FoundReport {
    CapacityReport capacity;
    double base = 0;      ///< s: mean of the least round trips to servers; 0: not known
    int64_t pace = 0;     ///< bit/s
    msfrs_time at = 0;    ///< of this report: changes are as old as they are before it
};

class FoundRate : public RateSource {
public:
    /// C is `min` at first.
    FoundRate(const CapacityParams &bounds, msfrs_time now):
        capacity_(bounds, now), noted_(now), lookAt_(now + FirstLook)
    {}
    /// From `min` to `max`.
    int64_t pace() const;
    int64_t pace(const Schedule &) override { return pace(); }
    /// Takes other bounds over.
    bool adopt(const Schedule &, msfrs_time now) override;
    std::optional<msfrs_time> due() const override { return capacity_.nextUpdate(); }
    bool settle(Schedule &, msfrs_time now) override;
    /// Reads what a packet shows of the link. One that goes up does not cross it.
    bool seen(const Arrival &, size_t transport, const Traits &, int64_t onLink, const Config &,
              msfrs_time now) override;
    void waits(bool, msfrs_time now) override;

    FoundReport report(msfrs_time now) const;

private:
    static constexpr msfrs_time FirstLook = 1'000'000'000; ///< ns
    msfrs_time longQueue() const;

    RoundTrips trips_;
    QueueEstimate path_;
    Capacity capacity_;
    double came_ = 0;         ///< bytes; a sum
    msfrs_time full_ = 0;     ///< ns in which packets have waited; a sum
    msfrs_time noted_;
    bool waiting_ = false;
    msfrs_time base_ = 0, allowed_ = 0; ///< ns; as of the last settle()
    msfrs_time lookAt_, lookUntil_ = 0; ///< when the next look for a base begins; when the last one ends
    bool looks_ = false;
    bool crowded_ = false;    ///< a queue stands at the provider, and the link is nearly used as C says: it is full
};

} // namespace msfrs::edge

#endif
