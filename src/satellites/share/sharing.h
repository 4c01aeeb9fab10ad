// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Several gateways on one link: the messages that each sends to the others, and the view of them for its own parties.
/// No clock and no sockets in here.
///
/// Every interval the sums of the local parties are written to the store, and the messages of the others are read. A
/// gateway whose message changes is present; one whose message has not changed for the time to live is gone, and its
/// share goes to the others. While the store does not answer, the state of the others is unknown. Up to the time to
/// live each gateway is assumed to be unchanged (StoreState::Last); then this gateway keeps to its static share
/// (StoreState::Static): to the local parties the others appear to own and use all of the rest.
///
/// The slots shown for a gateway are its fair share of W+ by demand (max-min) if it needs that many, and otherwise the
/// slots it has. Messages are one or two intervals old; shares do not change that fast, slots do.
#pragma once

#include "satellites/share/fair_shares.h"
#include "satellites/share/message.h"
#include "satellites/share/state_log.h"
#include "satellites/share/store.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msfrs::share {

struct SharingParams {
    std::string gateway;             ///< name of this gateway
    std::string store = "store";     ///< name of the store in messages
    std::vector<std::string> others; ///< names of the other gateways, at least one
    double share = 0.5;              ///< of C, 0..1 exclusive: for this gateway while the others are unknown
    int64_t interval = 100'000'000;  ///< ns between two exchanges
};

constexpr int64_t TimeToLive = 2'000'000'000;  ///< ns without a message after which a gateway is unknown
constexpr int64_t Patience = 1'500'000'000;    ///< ns for an exchange, including a new connection
constexpr int64_t RetryAfter = 250'000'000;    ///< ns between a failure and the next exchange
constexpr size_t MostOthers = 6;               ///< other gateways: the number of slots with columns for users

/// The segment of the local gateway.
class Board {
public:
    virtual ~Board() = default;
    /// Sums of the local parties; life and number are not set.
    virtual Sums local(int64_t now) = 0;
    /// Shows the local parties the state of another gateway, and that it is alive.
    /// \param other index into SharingParams::others \param leads whether its W+ is that of the link
    virtual void show(size_t other, const Sums &, bool leads, int64_t now) = 0;
    /// Hides a gateway that is gone.
    virtual void hide(size_t other) = 0;
};

enum class StoreState { Together, Last, Static };
const char *StoreStateText(StoreState);

struct OtherReport {
    std::string name;
    bool here = false;
    double age = -1;         ///< s since its latest message; negative: none yet
    uint64_t places = 0, shown = 0, waiting = 0;
    double demand = 0;
    uint64_t received = 0;   ///< bytes, as shown to the local parties
    uint64_t refused = 0;    ///< invalid messages
};

struct SharingReport {
    StoreState state = StoreState::Last;
    std::string failure;     ///< of the latest exchange; empty: it succeeded
    uint64_t exchanges = 0, failures = 0;
    double took = 0;         ///< s, duration of the latest successful exchange
    double sinceAnswer = 0;  ///< s
    size_t messageBytes = 0, users = 0; ///< of the latest message
    std::vector<OtherReport> others;
};

class Sharing {
public:
    /// \param life a random number, different with each start
    Sharing(const SharingParams &, Board &, Store &, StateLog::Log, uint64_t life, int64_t now);

    /// Does everything that is due. \returns when to call it next, ns
    int64_t tick(int64_t now);
    SharingReport report(int64_t now) const;

private:
    struct Other {
        std::string name;
        bool leads = false;          ///< its name sorts before ours
        std::optional<Sums> last;    ///< latest message
        int64_t heard = 0;           ///< when it was received
        bool refused = false;        ///< its current entry is not a valid message
        uint64_t refusals = 0;
        bool shownNow = false;       ///< whether the local parties see it
        unsigned news = 0;           ///< messages since it was last unknown; see Known
        uint64_t received = 0, own = 0; ///< as shown
        double ahead = 0;            ///< estimated bytes shown but not yet reported
        double speed = 0;            ///< bytes/s, recent mean
        double served = 0;           ///< bytes since it was last shown
        bool counts = false;         ///< whether its messages are recent enough to use
        double owed = 0;             ///< fraction of a slot left by rounding
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
    bool overdue(const Other &, int64_t now) const; ///< its message
    /// Extrapolates its traffic since the latest message at its recent speed. Otherwise the link would look half empty
    /// to the party that measures it, and W+ would grow.
    static void bridge(Other &, int64_t now);
    static void guess(Other &, double bytes); ///< adds estimated traffic
    void showRest(size_t n, const Sums &ours, double passed, int64_t now);
    void show(size_t n, Sums, double places, bool leads, int64_t now);

    const SharingParams params_;
    Board &board_;
    Store &store_;
    StateLog log_;
    const uint64_t life_;
    FairShares fairShares_;
    std::vector<Other> others_;
    StoreState state_ = StoreState::Last;
    bool underWay_ = false, everAnswered_ = false;
    int64_t asked_ = 0, next_;
    int64_t lastAnswer_;        ///< or time of the start
    int64_t together_ = 0;      ///< since when the store has been answering
    int64_t outage_ = 0;        ///< ns between the latest two answers
    int64_t lastShown_;
    int64_t namesake_ = 0;      ///< since when another process has used our name; 0: none
    int64_t localAt_;
    Sums local_;                ///< as of localAt_
    double served_ = 0;         ///< bytes of local parties since the others were last shown
    uint64_t number_ = 0;
    std::string failure_;
    uint64_t exchanges_ = 0, failures_ = 0;
    double took_ = 0;
    size_t messageBytes_ = 0, users_ = 0;
};

} // namespace msfrs::share
