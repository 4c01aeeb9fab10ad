// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What happens to a packet between its arrival and its verdict:
///
///     classify -> police -> mark -> AQM -> scheduler -> pacer -> verdict
///
/// The packets themselves stay in the kernel: here are their headers, and a number each that the verdict names. Knows
/// nothing of netlink and reads no clock.
#ifndef MSFRS_EDGE_DAEMON_PACKET_PATH_H
#define MSFRS_EDGE_DAEMON_PACKET_PATH_H

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

/// A packet as it comes from the kernel.
struct Arrival {
    uint32_t id;             ///< what the verdict names it by
    uint32_t mark;           ///< firewall mark
    uint8_t *data;           ///< from the IP header; may be written to, and is lost after arrive()
    uint32_t captured;       ///< bytes that are there
    uint32_t length;         ///< bytes that the packet has
    const FlowKey *origin = nullptr; ///< of its connection as it was begun, where the kernel tells
};

/// A packet that waits.
struct Held {
    Traits traits;
    uint32_t id = 0, mark = 0;
    bool remark = false;   ///< `mark` is to be set
    bool congested = false; ///< the AQM has marked it
    uint32_t headers = 0;  ///< bytes of each segment that are not payload
    size_t cls = 0;        ///< index into Config::classes
    msfrs_time since = 0;
    msfrs_item *item = nullptr; ///< whose host it is while it waits
    uint64_t connection = 0;    ///< UserOrder's
    int64_t bytes = 0;          ///< on the link, likewise
};

/// What a packet's headers say. \param headers bytes of each of its segments that are not payload
/// \param transport if not null: set to where the header of its protocol begins, as ReadKey() says
/// \returns false: there is no IP header that can be read, and only its length is known
bool ReadTraits(const Arrival &, Traits &, uint32_t &headers, size_t *transport = nullptr);

/// Where verdicts go, in order.
class Verdicts {
public:
    virtual ~Verdicts() = default;
    virtual void accept(uint32_t id) = 0;
    virtual void accept(uint32_t id, uint32_t mark) = 0;
    virtual void drop(uint32_t id) = 0;
};

/// Told of each packet that passes, before its verdict.
/// \param onLink bytes that it is on the link
using Observer = std::function<void(const Held &, int64_t onLink)>;

/// The bits of the firewall mark that the iptables rules turn into those of the IP header: from `mark shift=` on,
/// lowest first, 6 of the code point, 1 that says that they are to be set, 1 that says congestion experienced.
constexpr uint32_t MarkCodePoint = 0x3f, MarkSet = 0x40, MarkCongestion = 0x80, MarkBits = 0xff;

class PacketPath {
public:
    /// \param conditioner called only while the configuration has rules; null: never has
    /// \param common what other paths have a part of, too; null: this one has the link to itself
    PacketPath(std::unique_ptr<Schedule>, SharedConditioner *, CommonRate *, Verdicts &, msfrs_time now);
    PacketPath(const PacketPath &) = delete;

    /// Judges packets in their order, and lets those go whose time it is.
    void arrive(const Arrival *, size_t n, msfrs_time now);
    /// Lets those go whose time it is.
    void service(msfrs_time now);
    /// When service() has something to do; nothing while no packet waits.
    std::optional<msfrs_time> next() const;

    /// From now on by another configuration: what waits is classified anew, and keeps its order within a flow. It is
    /// not judged again. Classes of the same name and their flows keep what the scheduler has counted, while that stays
    /// the same one. \throws PluginError
    void replace(std::unique_ptr<Schedule>, msfrs_time now);
    /// Lets everything go that waits, in the scheduler's order, without pace.
    void flush(msfrs_time now);
    /// From now on as this party of a ledger: users, their accounts and the rate are the ledger's, where it tells.
    void join(std::unique_ptr<LinkParty>, msfrs_time now);
    /// Without a ledger, at the configuration's rate.
    void leave();
    /// Null: it has left, or another process has taken its slot.
    const LinkParty *party() const { return dynamic_cast<const LinkParty *>(rate_.get()); }
    /// Null: the rate is known.
    const FoundRate *found() const { return dynamic_cast<const FoundRate *>(rate_.get()); }

    /// Frees what is no longer needed; every few seconds.
    void tidy(msfrs_time now) { schedule_->forget(now); }

    const Schedule &schedule() const { return *schedule_; }
    /// By class; see Config::classes.
    std::vector<ClassCounts> counts() const;
    uint64_t unreadable() const { return unreadable_; }
    void observe(Observer observer) { observer_ = std::move(observer); }

    /// What a packet is on the link: the bytes of all packets it will be cut into.
    static int64_t onLink(const LinkConfig &, uint32_t length, uint32_t headers);

private:
    void read(const Arrival &, Held &, size_t &transport);
    void applyVerdict(const Verdict &, uint32_t codePoint, Held &) const;
    void pass(Held &);
    void accept(Held &);
    void admit(Held &, bool pass, msfrs_time now);
    Held &hold();
    void lose(Held &);
    void loseTurn(Held &, bool newest);
    bool markable(const Held &) const;
    void congested(Held &);
    msfrs_item *pick(msfrs_time now);
    void release(msfrs_item &, msfrs_time now);
    int64_t onLink(const Held &h) const { return onLink(schedule_->config().link, h.traits.length, h.headers); }
    void settle(msfrs_time now);
    void adopt(msfrs_time now);
    std::vector<ClassCounts> countsFor(const Config &next) const;

    std::unique_ptr<Schedule> schedule_;
    SharedConditioner *conditioner_;
    Verdicts &verdicts_;
    Pacer pacer_;
    std::unique_ptr<RateSource> rate_;
    std::vector<ClassCounts> counts_; ///< by class; `queued` is not kept up
    UserOrder order_;            ///< of what waits for users of the party
    std::deque<Held> held_;      ///< never shrinks; a deque never moves its elements
    std::vector<Held *> unused_;
    uint64_t unreadable_ = 0;
    std::optional<msfrs_time> retry_; ///< when the scheduler wants to be asked again
    std::function<bool(msfrs_item &)> victim_; ///< drops one that waits
    Engine::Lost lost_;                        ///< drops one whose turn has come
    Observer observer_;
};

} // namespace msfrs::edge

#endif
