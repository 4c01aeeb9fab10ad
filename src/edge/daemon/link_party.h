// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-edge as a party of the ledger (ledger/ledger.h): it paces the packets that did not come through Squid to its
/// share of the link, and a user's packets and responses are one account.
///
/// Share. A user *wants* more if a packet of it has waited for longer than a queue needs, within the last half second;
/// what the others bring is left out of the capacity. The rest is max-min by demand (ledger/shares.h): the demand of
/// the users here who want more, against that of each other party. A party that waits for places may use anything; one
/// that does not, a quarter more than it has had, so that it can grow. If nobody wants more here, the rate is as if all
/// who are here did: nobody is there to take too much, and who begins does not wait for the next settlement.
///
/// Unit. Squid charges what it reads, the edge frames: what the ledger is told of them is what a proxy would have read
/// of as many bytes on the link, so that a user of both pays the same for either.
///
/// What is lost here has used the link, too: packets go at the share less what their senders lose, up to a fifth of it.
/// Beyond that it is no answer to the pace but a flood, for which the others here are not to pay.
///
/// What comes over the link for it holds places of the window: W+ times its part of C, a flood not counted. So who
/// computes places leaves room for it at once, and not only when the link's utilisation shows it. Places are whole. Of
/// one that comes and goes Squid takes it when it goes, and keeps it for a quantum; so more than a quarter of one
/// counts as one. Where there are less than three in all, what is left of one is carried over to the next settlement.
#ifndef MSFRS_EDGE_DAEMON_LINK_PARTY_H
#define MSFRS_EDGE_DAEMON_LINK_PARTY_H

#include "edge/daemon/rate_source.h"
#include "ledger/directory.h"
#include "ledger/shared.h"

#include <array>
#include <map>
#include <vector>

namespace msfrs::edge {

/// Another party of the link, as far as the share of the edge goes.
struct Rival {
    double demand = 0;  ///< >= 0
    double rate = 0;    ///< bit/s that it had of late, >= 0
    bool waits = false; ///< it would use anything
};

/// \param capacity bit/s, >= 0 \param demand of our users who want more, >= 0 \param light bit/s of the others, >= 0
/// \returns what our packets may have, bit/s
double EdgeRate(double capacity, const std::vector<Rival> &, double demand, double light);

class LinkParty : public RateSource {
public:
    static constexpr double Capacity = 0.97;            ///< of C, for all parties: packets are to wait here
    static constexpr double Held = 0.985;               ///< likewise while one waits for places, whose window holds the
                                                        ///< link there: what it left of less would be for it alone
    static constexpr msfrs_time Stale = 10'000'000;     ///< ns after which who comes to an idle link has all looked at

    using Log = SharedLedger::Log;
    /// Takes a slot. The segment stays mapped while this lives. \throws ConfigError all slots are in use
    LinkParty(ledger::Segment &, Log, msfrs_time now);

    /// That of the configuration while nobody of Squid says what the link has.
    int64_t pace(const Schedule &schedule) override { return rate_ > 0 ? rate_ : schedule.config().link.rate; }
    bool adopt(const Schedule &, msfrs_time now) override;
    void release() override;
    std::optional<msfrs_time> due() const override { return settled_ + Ledger::Every; }
    bool stale(const msfrs_time now) const override { return now - settled_ >= Stale; }
    /// Tells the ledger all that is to be told, and has users of the engine charged what they had elsewhere.
    /// \returns false if another process has taken the slot
    bool settle(Schedule &, msfrs_time now) override;

    /// User 0: it is for nobody inside.
    ledger::Owner ownerOf(const Traits &, const Config &, msfrs_time now) override;
    void came(NamedFlow &, int64_t bytes, msfrs_time now) override;
    void passed(NamedFlow &, int64_t bytes, msfrs_time waited, msfrs_time now) override;
    /// What its user has of the share in a long round trip, and not less than goes before the rest (UserOrder).
    int64_t mostOfABeginning(const NamedFlow &) const override;

    /// What packets may have, bit/s; 0: nobody of Squid says what the link has.
    int64_t rate() const { return rate_; }
    uint32_t slot() const { return slot_; }

private:
    /// A user who had packets of late.
    struct User {
        NamedFlow *flow;
        Ledger::User number;
        double weight;
        uint64_t bytes = 0, before = 0; ///< that came; as of the last settlement
        msfrs_time latest;              ///< packet
        msfrs_time wanted;              ///< more, last
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

    static uint32_t FreeSlot(const ledger::Segment &, msfrs_time now);
    User *find(const NamedFlow &f) { return f.party ? &users_[f.party - 1] : nullptr; }
    const User *find(const NamedFlow &f) const { return f.party ? &users_[f.party - 1] : nullptr; }
    msfrs_time patience() const;
    void exchange(Engine &, msfrs_time now, double seconds);
    void lookAround(msfrs_time now, double seconds);
    void takeShare();
    uint32_t places();

    ledger::Segment &segment_;
    const uint32_t slot_;
    SharedLedger ledger_;
    std::vector<User> users_;               ///< NamedFlow::party is a place here, plus 1
    std::map<uint64_t, uint64_t> classes_;  ///< bytes that passed, by ledger::ClassKey()
    std::array<Other, ledger::Slots> others_{};
    std::vector<Rival> rivals_;
    Mean came_, passed_, lost_, light_;
    double seen_ = 0, heaviest_ = 1;        ///< weights of all who are here; the greatest of a class
    uint64_t received_ = 0, forwarded_ = 0; ///< bytes
    uint64_t receivedBefore_ = 0, forwardedBefore_ = 0;
    int64_t queuedBefore_ = 0;
    double part_ = 0;                       ///< of a place that was not held yet
    msfrs_time settled_;
    int64_t rate_ = 0;
};

} // namespace msfrs::edge

#endif
