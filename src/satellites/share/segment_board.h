// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The ledger's segment as msfrs-share sees it: the sums of the parties of this machine, and a slot for each of the
/// other gateways.
#ifndef MSFRS_SHARE_SEGMENT_BOARD_H
#define MSFRS_SHARE_SEGMENT_BOARD_H

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
    static constexpr int64_t Lately = TimeToLive;    ///< ns for which a user is told of after its latest byte
    static constexpr int64_t Kept = 60'000'000'000;  ///< ns for which it is remembered, so that its bytes go on

    explicit SegmentBoard(const size_t others): others_(others) {}

    /// Works on this segment from now on; nullptr: on none. What was shown is shown no more.
    void use(ledger::Segment *);

    Sums local(int64_t now) override;
    void show(size_t other, const Sums &, bool leads, int64_t now) override;
    void hide(size_t other) override;

    /// Local parties that lived when local() was called last.
    size_t parties() const { return parties_; }
    /// Times that there was no room for a gateway among the slots, or for a user in the table.
    uint64_t crowded() const { return crowded_; }

private:
    /// What a slot's counts were, so that their growth can be added up.
    struct Followed {
        uint64_t epoch = 0, received = 0, own = 0;
        std::map<uint64_t, uint64_t> served; ///< by keys of classes
    };
    struct User {
        uint32_t entry = 0; ///< in the table
        std::array<uint64_t, ledger::Columns> columns{};
        uint64_t bytes = 0, recent = 0;
        int64_t active = 0, since = 0; ///< latest byte or work; when `recent` begins
    };
    /// A user of another gateway.
    struct Guest {
        uint32_t entry = 0;  ///< in the table, while active
        bool active = false; ///< the entry has our bit
        uint64_t bytes = 0;  ///< as its gateway counts
        int64_t told = 0;    ///< when its gateway told of it last
    };
    struct Other {
        std::unique_ptr<ledger::OwnSlot> slot;
        std::unordered_map<uint64_t, Guest> guests; ///< by keys
    };

    void addParty(const ledger::Slot &, const ledger::SlotReading &, Followed &, Sums &);
    void addUsers(uint64_t local, int64_t now, Sums &);
    /// \returns bytes that it has had since the last call
    uint64_t look(User &, const ledger::User &entry, uint64_t counted) const;
    void showUsers(Other &, const std::vector<UserSums> &, int64_t now);
    void showUser(Other &, const UserSums &, uint64_t living, int64_t now);

    ledger::Segment *segment_ = nullptr;
    std::vector<Other> others_;
    std::array<Followed, ledger::Slots> followed_;
    std::map<uint64_t, ClassSums> classes_; ///< by keys: demand as of now, served since the start
    std::unordered_map<uint64_t, User> users_;
    uint64_t received_ = 0, own_ = 0;
    uint64_t local_ = 0; ///< slots of local parties as of the latest call, a bit each
    size_t parties_ = 0;
    uint64_t crowded_ = 0;
};

} // namespace msfrs::share

#endif
