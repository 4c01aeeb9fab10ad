// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The rate of a downlink that is not known (`link rate=auto`): Capacity estimates it from passing packets, and the
/// pace here makes that possible.
///
/// D is the arrival rate from the provider, before packets wait here. RTT samples are those of the users' connections,
/// see RoundTrips. Limited: packets wait here. Squid bounds bytes in flight; here the senders do, and once packets
/// wait, they send as fast as packets leave. So the pace is C, but
/// - 5 % more while there is no queue at the provider, or D could never exceed C;
/// - 5 % less if the queue there is half of the allowed one, and 30 to 50 % less than C and than D while it is long: it
///   drains, and stands here instead, where the scheduler and the AQM decide on it;
/// - half of C for 300 ms, after the first second and then every 20 s, unless the queue is long: a queue that is in all
///   RTT samples is part of the base RTT, and would stay for good (as BBR does; Cardwell et al., CACM 60(2), 2017).
/// Capacity's *limited* also holds with a queue at the provider while D is at least 70 % of C: if C is too high, no
/// packets wait here.
#pragma once

#include "edge/daemon/rate_source.h"
#include "edge/daemon/round_trips.h"
#include "window/capacity.h"
#include "window/queue_estimate.h"

namespace msfrs::edge {

/// The estimate and the reasons for it.
struct FoundReport {
    CapacityReport capacity;
    double base = 0;      ///< s: mean base RTT to servers; 0: not known
    int64_t pace = 0;     ///< bit/s
    msfrs_time at = 0;    ///< of this report, to which the age of a change is relative
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
    /// Adopts other bounds.
    bool adopt(const Schedule &, msfrs_time now) override;
    std::optional<msfrs_time> due() const override { return capacity_.nextUpdate(); }
    bool settle(Schedule &, msfrs_time now) override;
    /// Takes measurements from a packet. An upstream packet does not cross the link.
    bool seen(const Arrival &, const Traits &, int64_t onLink, const Config &, msfrs_time now) override;
    void waits(bool, msfrs_time now) override;

    FoundReport report(msfrs_time now) const;

private:
    static constexpr msfrs_time FirstLook = 1'000'000'000; ///< ns between probes until a base RTT is known
    msfrs_time longQueue() const;

    RoundTrips trips_;
    QueueEstimate path_;
    Capacity capacity_;
    double came_ = 0;         ///< bytes; a sum
    msfrs_time full_ = 0;     ///< ns in which packets have waited; a sum
    msfrs_time noted_;
    bool waiting_ = false;
    msfrs_time base_ = 0, allowed_ = 0; ///< ns; as of the last settle()
    msfrs_time lookAt_, lookUntil_ = 0; ///< start of the next probe for a base RTT; end of the last one
    bool looks_ = false;
    bool crowded_ = false;    ///< there is a queue at the provider, and D is close to C: the link is full
};

} // namespace msfrs::edge
