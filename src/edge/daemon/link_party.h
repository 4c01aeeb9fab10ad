// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-edge as a party of the ledger (ledger/ledger.h): it paces the packets that do not pass Squid to its share of
/// the link, and charges a user's packets and responses to one account.
///
/// Share. A user *wants* more if a packet of it has waited for longer than a queue requires within the last half
/// second. The traffic of the other users is subtracted from the capacity. The rest is shared max-min by demand
/// (ledger/shares.h): the demand of the users here who want more, against that of each other party. A party that waits
/// for slots may use any rate; one that does not, a quarter more than it has had, so that it can grow. If no user wants
/// more here, the rate is as if all active users did: there is no user to take too much, and a user that starts does
/// not wait for the next settlement.
///
/// Unit. Squid charges payload, the edge frames. The ledger gets the bytes that a proxy would have read from the same
/// bytes on the link, so that a user of both pays the same for either.
///
/// Loss. Packets dropped here have used the link, too: packets leave at the share less the loss of their senders, up to
/// a fifth of it. A higher loss is no response to the pace but a flood, for which the other users are not to pay.
///
/// Slots. Traffic over the link for the edge holds slots of the window: W+ times its part of C, without a flood. So the
/// party that computes the window makes room for it at once, before utilisation shows it. Slots are integers. When the
/// edge releases one, Squid takes it and keeps it for a quantum; so more than a quarter of one counts as one. If there
/// are fewer than three in all, the fraction is carried over to the next settlement.
#pragma once

#include "edge/daemon/rate_source.h"
#include "ledger/directory.h"
#include "ledger/shared.h"

#include <array>
#include <map>
#include <vector>

namespace msfrs::edge {

/// Another party of the link, as input for the share of the edge.
struct Rival {
    double demand = 0;  ///< >= 0
    double rate = 0;    ///< its recent rate, bit/s >= 0
    bool waits = false; ///< it would use any rate
};

/// \param capacity bit/s, >= 0 \param demand of our users who want more, >= 0 \param light bit/s of the others, >= 0
/// \returns the rate for our packets, bit/s
double EdgeRate(double capacity, const std::vector<Rival> &, double demand, double light);

class LinkParty : public RateSource {
public:
    static constexpr double Capacity = 0.97;            ///< of C, for all parties, so that packets wait here
    static constexpr double Held = 0.985;               ///< likewise while one waits for slots. Its window fills the
                                                        ///< link this far: with less, the rest goes to it alone
    static constexpr msfrs_time Stale = 10'000'000;     ///< ns after which a packet to an idle edge causes a settlement

    using Log = SharedLedger::Log;
    /// Takes a slot. The segment stays mapped while this lives. \throws ConfigError all slots are in use
    LinkParty(ledger::Segment &, Log, msfrs_time now);

    /// The configured rate while no worker of Squid publishes the link's.
    int64_t pace(const Schedule &schedule) override { return rate_ > 0 ? rate_ : schedule.config().link.rate; }
    bool adopt(const Schedule &, msfrs_time now) override;
    void release() override;
    std::optional<msfrs_time> due() const override { return settled_ + Ledger::Every; }
    bool stale(const msfrs_time now) const override { return now - settled_ >= Stale; }
    /// Publishes all state in the ledger, and charges the engine's users for their service elsewhere.
    /// \returns false if another process has taken the slot
    bool settle(Schedule &, msfrs_time now) override;

    /// User 0: the receiver is not inside.
    ledger::Owner ownerOf(const Traits &, const Config &, msfrs_time now) override;
    void came(NamedFlow &, int64_t bytes, msfrs_time now) override;
    void passed(NamedFlow &, int64_t bytes, msfrs_time waited, msfrs_time now) override;
    /// The user's part of the share over a long round trip, but at least UserOrder::Early.
    int64_t mostOfABeginning(const NamedFlow &) const override;

    /// The rate for packets, bit/s; 0: no worker of Squid publishes the link's.
    int64_t rate() const { return rate_; }
    uint32_t slot() const { return slot_; }

private:
    /// A user with recent packets.
    struct User {
        NamedFlow *flow;
        Ledger::User number;
        double weight;
        uint64_t bytes = 0, before = 0; ///< arrived so far; as of the last settlement
        msfrs_time latest;              ///< latest packet
        msfrs_time wanted;              ///< when it last wanted more
    };
    /// A rate over the last half second.
    struct Mean {
        double rate = 0;                ///< bit/s
        void add(double bytes, double seconds);
    };
    struct Other {
        uint64_t epoch = 0, own = 0;
        Mean rate;
        msfrs_time waited;
    };

    User *find(const NamedFlow &f) { return f.party ? &users_[f.party - 1] : nullptr; }
    msfrs_time patience() const;
    void exchange(Engine &, msfrs_time now, double seconds);
    void lookAround(msfrs_time now, double seconds);
    void takeShare();
    uint32_t places();

    ledger::Segment &segment_;
    const uint32_t slot_;
    SharedLedger ledger_;
    std::vector<User> users_;               ///< NamedFlow::party is an index here plus 1
    std::map<uint64_t, uint64_t> classes_;  ///< bytes passed, by ledger::ClassKey()
    std::array<Other, ledger::Slots> others_{};
    std::vector<Rival> rivals_;
    Mean came_, passed_, lost_, light_;
    double seen_ = 0, heaviest_ = 1;        ///< weights of all active users; the greatest of a class
    uint64_t received_ = 0, forwarded_ = 0; ///< bytes
    uint64_t receivedBefore_ = 0, forwardedBefore_ = 0;
    int64_t queuedBefore_ = 0;
    double part_ = 0;                       ///< fraction of a slot not held yet
    msfrs_time settled_;
    int64_t rate_ = 0;
};

} // namespace msfrs::edge
