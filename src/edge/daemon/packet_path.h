// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What happens to a packet between its arrival and its verdict:
///
///     classify -> police -> mark -> AQM -> scheduler -> pacer -> verdict
///
/// The packets stay in the kernel; here are only their headers, and their numbers for the verdicts. Knows nothing of
/// netlink and reads no clock.
#pragma once

#include "edge/conditioner.h"
#include "edge/daemon/common_rate.h"
#include "edge/daemon/counters.h"
#include "edge/daemon/found_rate.h"
#include "edge/daemon/link_party.h"
#include "edge/daemon/schedule.h"
#include "edge/daemon/user_order.h"
#include "edge/pacer.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace msfrs::edge {

/// A packet as delivered by the kernel.
struct Arrival {
    uint32_t id;             ///< its number for the verdict
    uint32_t mark;           ///< firewall mark
    uint8_t *data;           ///< from the IP header; may be written to, and is lost after arrive()
    uint32_t captured;       ///< bytes at `data`
    uint32_t length;         ///< bytes of the packet
    const FlowKey *origin = nullptr; ///< original tuple of its connection, if the kernel reports it
};

/// A waiting packet.
struct Held {
    Traits traits;
    uint32_t id = 0, mark = 0;
    bool remark = false;   ///< `mark` is to be set
    bool congested = false; ///< the AQM has marked it
    size_t cls = 0;        ///< index into Config::classes
    msfrs_time since = 0;
    msfrs_item *item = nullptr; ///< its item, whose host it is while it waits
    uint64_t connection = 0;    ///< for UserOrder
    int64_t bytes = 0;          ///< on the link, likewise
};

/// Parses a packet's headers into new Traits.
void ReadTraits(const Arrival &, Traits &);

/// Receives verdicts, in order.
class Verdicts {
public:
    virtual ~Verdicts() = default;
    /// \param mark the packet's firewall mark from now on; nothing: it does not change
    virtual void give(uint32_t id, bool pass, std::optional<uint32_t> mark) = 0;
};

/// Called for each packet that passes, before its verdict.
/// \param onLink its bytes on the link
using Observer = std::function<void(const Held &, int64_t onLink)>;

/// The bits of the firewall mark that the iptables rules copy to the IP header: from `mark shift=` on, lowest first, 6
/// of the code point, 1 that is set if the code point is to be written, 1 for congestion experienced.
constexpr uint32_t MarkCodePoint = 0x3f, MarkSet = 0x40, MarkCongestion = 0x80, MarkBits = 0xff;

class PacketPath {
public:
    /// \param conditioner called only while the configuration has rules; null: it never has
    /// \param common the rate shared with other paths; null: this one has the link to itself
    PacketPath(std::unique_ptr<Schedule>, Conditioner *, CommonRate *, Verdicts &, msfrs_time now);
    PacketPath(const PacketPath &) = delete;

    /// Polices, marks and queues packets in their order, and releases those that are due.
    void arrive(const Arrival *, size_t n, msfrs_time now);
    /// Releases packets that are due.
    void service(msfrs_time now);
    /// When to call service() again, for packets or for the rate source; nothing if neither needs it.
    std::optional<msfrs_time> next() const;

    /// Switches to another configuration. Waiting packets are classified again and keep their order within a flow. They
    /// are not policed again. Classes of the same name and their flows keep the scheduler's counters if it is the same
    /// scheduler. \throws PluginError
    void replace(std::unique_ptr<Schedule>, msfrs_time now);
    /// Releases all waiting packets, in the scheduler's order, without pacing.
    void flush(msfrs_time now);
    /// Joins a ledger as this party. Users, their accounts and the rate are the ledger's from now on, if it has them.
    void join(std::unique_ptr<LinkParty>, msfrs_time now);
    /// Leaves the ledger and uses the configured rate.
    void leave();
    /// Null: it has left, or another process has taken its slot.
    const LinkParty *party() const { return dynamic_cast<const LinkParty *>(rate_.get()); }
    /// Null: the rate is not estimated.
    const FoundRate *found() const { return dynamic_cast<const FoundRate *>(rate_.get()); }

    /// Frees memory that is no longer needed; to be called every few seconds.
    void tidy(msfrs_time now) { schedule_->forget(now); }

    const Schedule &schedule() const { return *schedule_; }
    /// By class; see Config::classes.
    std::vector<ClassCounts> counts() const;
    uint64_t unreadable() const { return unreadable_; }
    void observe(Observer observer) { observer_ = std::move(observer); }

    /// A packet's bytes on the link: those of all packets it will be split into.
    static int64_t onLink(const LinkConfig &, const Traits &);

private:
    void applyVerdict(const Verdict &, uint32_t codePoint, Held &) const;
    void admit(const Arrival &, Held &, bool conforms, msfrs_time now);
    Held &hold();
    void pass(Held &, int64_t bytes, msfrs_time waited);
    void drop(Held &, Volume ClassCounts::*as = &ClassCounts::dropped);
    bool markable(const Held &) const;
    void congested(Held &);
    void release(msfrs_item &, msfrs_time now);
    int64_t onLink(const Held &h) const { return onLink(schedule_->config().link, h.traits); }
    void settle(msfrs_time now);
    void adopt(msfrs_time now);
    std::vector<ClassCounts> countsFor(const Config &next) const;

    std::unique_ptr<Schedule> schedule_;
    Conditioner *conditioner_;
    Verdicts &verdicts_;
    Pacer pacer_;
    std::unique_ptr<RateSource> rate_;
    std::vector<ClassCounts> counts_; ///< by class; `queued` is not maintained
    UserOrder order_;            ///< of packets that wait for users of the party
    std::deque<Held> held_;      ///< never shrinks; a deque never moves its elements
    std::vector<Held *> unused_;
    uint64_t unreadable_ = 0;
    std::optional<msfrs_time> retry_; ///< when to ask the scheduler again
    std::function<bool(msfrs_item &)> victim_; ///< drops a waiting packet
    Engine::Lost lost_;                        ///< drops a packet at its turn
    Observer observer_;
};

} // namespace msfrs::edge
