// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Several gateways on one link: what each tells the others, and what its own parties see of them. No clock and no
/// sockets in here.
///
/// Every interval the sums of the local parties go to the store, and what the others left there comes back. A gateway
/// whose message changes is here; one whose message has not changed for the time to live is gone, and what it had is
/// for the others. While the store does not answer, nothing is known of anybody: up to the time to live each gateway
/// is taken for what it was (StoreState::Last), then this one keeps to its static share (StoreState::Static): to the
/// local parties the others look as if they had all of the rest and used it.
///
/// What is shown of a gateway's places is what it is due of W+ by its demand (max-min) where it wants that, and what
/// it has where that is less. A gateway's news are old by one or two intervals; shares do not change that fast,
/// places do.
#ifndef MSFRS_SHARE_SHARING_H
#define MSFRS_SHARE_SHARING_H

#include "satellites/share/dues.h"
#include "satellites/share/message.h"
#include "satellites/share/state_log.h"
#include "satellites/share/store.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msfrs::share {

struct SharingParams {
    std::string gateway;             ///< our name
    std::string store = "store";     ///< what messages call the store
    std::vector<std::string> others; ///< names of the other gateways, at least one
    double share = 0.5;              ///< of C, 0..1 exclusive: what this gateway may have while the others are unknown
    int64_t interval = 100'000'000;  ///< ns between two exchanges
};

constexpr int64_t TimeToLive = 2'000'000'000;  ///< ns without news after which nothing is known of a gateway
constexpr int64_t Patience = 1'500'000'000;    ///< ns that an exchange may take, a new connection included
constexpr int64_t RetryAfter = 250'000'000;    ///< ns between a failure and the next exchange
constexpr size_t MostOthers = 6;               ///< gateways beside this one: so many slots have columns for users

/// The segment of the local gateway.
class Board {
public:
    virtual ~Board() = default;
    /// What the local parties come to; life and number are not set.
    virtual Sums local(int64_t now) = 0;
    /// Shows the local parties what another gateway has; also says that it lives.
    /// \param other index into SharingParams::others \param leads its W+ is that of the link
    virtual void show(size_t other, const Sums &, bool leads, int64_t now) = 0;
    /// The gateway is not there any more.
    virtual void hide(size_t other) = 0;
};

enum class StoreState { Together, Last, Static };
const char *StoreStateText(StoreState);

struct OtherReport {
    std::string name;
    bool here = false;
    double age = -1;         ///< s since its latest news; negative: none yet
    uint64_t places = 0, shown = 0, waiting = 0;
    double demand = 0;
    uint64_t received = 0;   ///< bytes, as shown to the local parties
    uint64_t refused = 0;    ///< messages that were not what they should be
};

struct SharingReport {
    StoreState state = StoreState::Last;
    std::string failure;     ///< of the latest exchange; empty: it was answered
    uint64_t exchanges = 0, failures = 0;
    double took = 0;         ///< s, the latest that was answered
    double sinceAnswer = 0;  ///< s
    size_t messageBytes = 0, users = 0; ///< of the latest message
    std::vector<OtherReport> others;
};

class Sharing {
public:
    /// \param life a random number, another one with each start
    Sharing(const SharingParams &, Board &, Store &, StateLog::Log, uint64_t life, int64_t now);

    /// Does what is due. \returns when to call it next, ns
    int64_t tick(int64_t now);
    SharingReport report(int64_t now) const;

private:
    struct Other {
        std::string name;
        bool leads = false;          ///< its name is before ours
        std::optional<Sums> last;    ///< latest news
        int64_t heard = 0;           ///< when they came
        bool refused = false;        ///< what is in its place now is no message
        uint64_t refusals = 0;
        bool shownNow = false;       ///< the local parties see it
        unsigned news = 0;           ///< messages since it was not known last; see Known
        uint64_t received = 0, own = 0; ///< as shown
        double ahead = 0;            ///< bytes shown that were guessed, and did not come yet
        double speed = 0;            ///< bytes/s, of late
        double served = 0;           ///< bytes since it was shown last
        bool counts = false;         ///< its news are new enough to go by
        double owed = 0;             ///< part of a place that rounding left
        uint64_t places = 0;         ///< as shown
    };

    const Sums &local(int64_t now);
    void ask(int64_t now);
    void answered(const Store::Answer &, int64_t now);
    void failed(const std::string &why, int64_t now);
    void findNamesake(const std::optional<std::string> &message, int64_t now);
    void heard(Other &, const std::string &message, int64_t now);
    void settle(int64_t now);
    StoreState stateAt(int64_t now) const;
    bool here(const Other &, int64_t now) const;
    bool gone(const Other &, int64_t now) const;
    void showAll(int64_t now);
    bool overdue(const Other &, int64_t now) const; ///< its news
    /// Until they come: what it has carried since the latest, if it went on as it did. Else the link looks half empty
    /// to who measures it, and W+ grows.
    static void bridge(Other &, int64_t now);
    static void guess(Other &, double bytes); ///< what it has carried, as far as we know
    void showRest(size_t n, const Sums &ours, double passed, int64_t now);
    void show(size_t n, Sums, double places, bool leads, int64_t now);

    const SharingParams params_;
    Board &board_;
    Store &store_;
    StateLog log_;
    const uint64_t life_;
    Dues dues_;
    std::vector<Other> others_;
    StoreState state_ = StoreState::Last;
    bool underWay_ = false, everAnswered_ = false;
    int64_t asked_ = 0, next_;
    int64_t lastAnswer_;        ///< or the start
    int64_t together_ = 0;      ///< since when the store has answered
    int64_t outage_ = 0;        ///< ns between the latest two answers
    int64_t lastShown_;
    int64_t namesake_ = 0;      ///< since when another has left messages in our name; 0: nobody
    int64_t localAt_;
    Sums local_;                ///< as of localAt_
    double served_ = 0;         ///< bytes of local parties since the others were shown last
    uint64_t number_ = 0;
    std::string failure_;
    uint64_t exchanges_ = 0, failures_ = 0;
    double took_ = 0;
    size_t messageBytes_ = 0, users_ = 0;
};

} // namespace msfrs::share

#endif
