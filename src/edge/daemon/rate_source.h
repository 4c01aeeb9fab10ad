// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Where the rate at which packets leave comes from, and what that source has to see of them. A path has one at a time:
///
///     FixedRate   the configuration has it
///     SharedRate  the same, divided among the threads of several queues
///     FoundRate   nobody knows it: found from the packets
///     LinkParty   the ledger has it, and the users' accounts with it
#ifndef MSFRS_EDGE_DAEMON_RATE_SOURCE_H
#define MSFRS_EDGE_DAEMON_RATE_SOURCE_H

#include "edge/daemon/schedule.h"

#include <cstdint>
#include <optional>

namespace msfrs::edge {

struct Arrival;

class RateSource {
public:
    virtual ~RateSource() = default;

    /// bit/s for what waits in the schedule; 0: no limit.
    virtual int64_t pace(const Schedule &) = 0;
    /// Packets wait in this schedule from here on. \returns false if its configuration wants another source
    virtual bool adopt(const Schedule &, msfrs_time now) = 0;
    /// They no longer wait in the schedule that was adopted.
    virtual void release() {}

    /// When settle() is to be called next; nothing: never.
    virtual std::optional<msfrs_time> due() const { return {}; }
    /// Whether settle() is to be called before a packet that finds none waiting.
    virtual bool stale(msfrs_time) const { return false; }
    /// \returns false if this source has come to its end
    virtual bool settle(Schedule &, msfrs_time) { return true; }

    /// A packet has arrived. \param transport where the header of its protocol begins \param onLink bytes
    /// \returns whether it does not come over the link, and so need not wait
    virtual bool seen(const Arrival &, size_t /*transport*/, const Traits &, int64_t /*onLink*/, const Config &,
                      msfrs_time)
    {
        return false;
    }
    /// Whose account a packet is on; user 0: nobody's.
    virtual ledger::Owner ownerOf(const Traits &, const Config &, msfrs_time) { return {}; }
    /// A packet is queued for a flow, which may still lose it. \param bytes on the link
    virtual void came(NamedFlow &, int64_t /*bytes*/, msfrs_time) {}
    /// It goes, after so long.
    virtual void passed(NamedFlow &, int64_t /*bytes*/, msfrs_time /*waited*/, msfrs_time) {}
    /// Bytes of a connection of the flow that may wait when it begins; see UserOrder::overshoots().
    virtual int64_t mostOfABeginning(const NamedFlow &) const { return INT64_MAX; }
    /// Whether packets wait, from now on.
    virtual void waits(bool, msfrs_time) {}
};

class FixedRate : public RateSource {
public:
    int64_t pace(const Schedule &schedule) override { return schedule.config().link.rate; }
    bool adopt(const Schedule &schedule, msfrs_time) override { return !schedule.config().link.found(); }
};

} // namespace msfrs::edge

#endif
