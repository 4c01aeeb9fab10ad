// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The source of the rate at which packets leave, and the events that it has to see. A path has one at a time:
///
///     FixedRate   the configured rate
///     SharedRate  the same, divided among the threads of several queues
///     FoundRate   not known: estimated from the packets
///     LinkParty   given by the ledger, with the users' accounts
#pragma once

#include "edge/daemon/schedule.h"

#include <cstdint>
#include <optional>

namespace msfrs::edge {

struct Arrival;

class RateSource {
public:
    virtual ~RateSource() = default;

    /// The rate for packets in the schedule, bit/s; 0: no limit.
    virtual int64_t pace(const Schedule &) = 0;
    /// Packets wait in this schedule from now on. \returns false if its configuration needs another source
    virtual bool adopt(const Schedule &, msfrs_time now) = 0;
    /// They no longer wait in the adopted schedule.
    virtual void release() {}

    /// When to call settle() next; nothing: never.
    virtual std::optional<msfrs_time> due() const { return {}; }
    /// Whether to call settle() before a packet that finds none waiting.
    virtual bool stale(msfrs_time) const { return false; }
    /// \returns false if this source has ended
    virtual bool settle(Schedule &, msfrs_time) { return true; }

    /// A packet has arrived. \param onLink bytes
    /// \returns whether it does not cross the link, and so need not wait
    virtual bool seen(const Arrival &, const Traits &, int64_t /*onLink*/, const Config &, msfrs_time) { return false; }
    /// The account of a packet; user 0: none.
    virtual ledger::Owner ownerOf(const Traits &, const Config &, msfrs_time) { return {}; }
    /// A packet is queued for a flow, and may still be dropped. \param bytes on the link
    virtual void came(NamedFlow &, int64_t /*bytes*/, msfrs_time) {}
    /// It leaves after its wait.
    virtual void passed(NamedFlow &, int64_t /*bytes*/, msfrs_time /*waited*/, msfrs_time) {}
    /// Most bytes of a new connection of the flow that may wait; see UserOrder::overshoots().
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
