// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-share's view of the ledger's segment: the sums of the parties of this machine, and a slot for each of the
/// other gateways.
#pragma once

#include "ledger/segment.h"
#include "ledger/slots.h"
#include "satellites/share/sharing.h"

#include <array>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace msfrs::share {

class SegmentBoard final : public Board {
public:
    static constexpr int64_t Lately = TimeToLive;    ///< ns for which a user is reported after its latest byte
    static constexpr int64_t Kept = 60'000'000'000;  ///< ns for which it is kept, so that its bytes continue

    explicit SegmentBoard(const size_t others): others_(others) {}

    /// Uses this segment from now on; nullptr: none. Shown gateways are hidden.
    void use(ledger::Segment *);

    Sums local(int64_t now) override;
    void show(size_t other, const Sums &, bool leads, int64_t now) override;
    void hide(size_t other) override;

    /// Local parties alive at the last call of local().
    size_t parties() const { return parties_; }
    /// Number of times that no slot was free for a gateway, or the table had no room for a user.
    uint64_t crowded() const { return crowded_; }

private:
    /// Previous counts of a slot, from which their growth is computed.
    struct Followed {
        uint64_t epoch = 0, received = 0, own = 0;
        std::map<uint64_t, uint64_t> served; ///< by keys of classes
    };
    struct User {
        uint32_t entry = 0; ///< in the table
        std::array<uint64_t, ledger::Columns> columns{};
        uint64_t bytes = 0, recent = 0;
        int64_t active = 0, since = 0; ///< time of the latest byte or work; start of `recent`
    };
    /// A user of another gateway.
    struct Guest {
        uint32_t entry = 0;  ///< in the table, while active
        bool active = false; ///< whether the entry has our bit
        uint64_t bytes = 0;  ///< as counted by its gateway
        int64_t told = 0;    ///< when its gateway last reported it
    };
    struct Other {
        std::unique_ptr<ledger::OwnSlot> slot;
        std::unordered_map<uint64_t, Guest> guests; ///< by keys
    };

    void addParty(const ledger::Slot &, const ledger::SlotReading &, Followed &, Sums &);
    void addUsers(uint64_t local, int64_t now, Sums &);
    /// \returns its bytes since the last call
    uint64_t look(User &, const ledger::User &entry, uint64_t counted) const;
    void showUsers(Other &, const std::vector<UserSums> &, int64_t now);
    void showUser(Other &, const UserSums &, uint64_t living, int64_t now);

    ledger::Segment *segment_ = nullptr;
    std::vector<Other> others_;
    std::array<Followed, ledger::Slots> followed_;
    std::map<uint64_t, ClassSums> classes_; ///< by keys: current demand, bytes served since the start
    std::unordered_map<uint64_t, User> users_;
    uint64_t received_ = 0, own_ = 0;
    uint64_t local_ = 0; ///< slots of local parties at the latest call, one bit each
    size_t parties_ = 0;
    uint64_t crowded_ = 0;
};

} // namespace msfrs::share
