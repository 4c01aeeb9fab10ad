// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/segment_board.h"

#include "ledger/users.h"

#include <algorithm>

namespace msfrs::share {

namespace {

using ledger::Bit;
using ledger::Columns;
using ledger::Kind;
using ledger::Relaxed;
using ledger::Set;
using ledger::SetReal;
using ledger::Slots;

/// Impossible number of bytes of a user between two readings: its column was reset.
constexpr uint64_t MostGrowth = uint64_t{1} << 36;

uint16_t Small(const uint64_t count) { return static_cast<uint16_t>(std::min(count, ledger::MostCount)); }

/// Adds the growth of a count to `sum`, and stores its new value.
void Follow(uint64_t &sum, uint64_t &before, const uint64_t now)
{
    if (now - before < MostGrowth)
        sum += now - before;
    before = now;
}

} // namespace

void SegmentBoard::use(ledger::Segment *const segment)
{
    for (auto &other : others_) {
        other.slot.reset(); // before the memory may be unmapped
        other.guests.clear();
    }
    segment_ = segment;
    followed_ = {};
    users_.clear();
    local_ = 0;
    parties_ = 0;
}

Sums SegmentBoard::local(const int64_t now)
{
    Sums sums;
    uint64_t local = 0;
    parties_ = 0;
    for (auto &[key, cls] : classes_)
        cls.demand = 0;
    bool led = false, metered = false;
    for (uint32_t n = 0; segment_ && n < Slots; ++n) {
        const auto &slot = segment_->slots[n];
        const auto reading = ledger::ReadSlot(slot, now);
        const auto figures = reading ? ledger::ReadFigures(slot) : std::nullopt;
        if (!figures || (reading->kind != Kind::Worker && reading->kind != Kind::Edge))
            continue;
        local |= Bit(n);
        ++parties_;
        auto &followed = followed_[n];
        if (followed.epoch != reading->epoch) {
            followed = {reading->epoch, figures->received, figures->own, {}};
            local_ &= ~Bit(n); // the content of its columns is meaningless, too
        }
        addParty(slot, *reading, followed, sums);
        Follow(own_, followed.own, figures->own);
        // All parties of the machine have the same interface count: the first one is enough.
        uint64_t again = 0;
        Follow(figures->metered && metered ? again : received_, followed.received, figures->received);
        metered |= figures->metered;
        if (figures->rank == ledger::Ours && !led) {
            led = true;
            sums.limit = figures->limit;
            sums.rate = std::min(figures->rate, MostRate);
            sums.utilisation = std::min(figures->utilisation, MostUtilisation);
            sums.queue = figures->target;
            sums.config = figures->config;
        }
    }
    sums.metered = metered;
    sums.places = std::min(sums.places, MostPlaces);
    sums.waiting = std::min(sums.waiting, MostWaiting);
    sums.queued = std::min(sums.queued, MostWaiting);
    sums.demand = std::min(sums.demand, MostDemand);
    sums.received = received_;
    sums.own = own_;
    for (const auto &[key, cls] : classes_)
        sums.classes.push_back({key, cls.served, std::min(cls.demand, MostDemand)});
    if (segment_)
        addUsers(local, now, sums);
    local_ = local;
    return sums;
}

void SegmentBoard::addParty(const ledger::Slot &slot, const ledger::SlotReading &reading, Followed &followed,
                            Sums &sums)
{
    sums.places += reading.places;
    sums.waiting += reading.waiting;
    sums.queued += reading.queued;
    sums.demand += reading.demand;
    for (const auto &cls : slot.classes) {
        const auto key = cls.key.load(Relaxed), served = cls.served.load(Relaxed);
        const double demand = ledger::Real(cls.demand.load(Relaxed));
        // Whatever is in the segment, keep no more classes than a message holds.
        if (key == 0 || !(demand >= 0 && demand <= MostDemand) ||
            (classes_.size() == MostClasses && !classes_.count(key)))
            continue;
        auto &sum = classes_[key];
        sum.demand += demand;
        Follow(sum.served, followed.served.emplace(key, served).first->second, served);
    }
}

uint64_t SegmentBoard::look(User &user, const ledger::User &entry, const uint64_t counted) const
{
    uint64_t grown = 0;
    for (uint32_t n = 0; n < Columns; ++n) {
        const auto column = entry.columns[n].load(Relaxed);
        const auto growth = ledger::ColumnGrowth(user.columns[n], column);
        if ((counted & Bit(n)) && growth < MostGrowth)
            grown += growth;
        user.columns[n] = column;
    }
    return grown;
}

void SegmentBoard::addUsers(const uint64_t local, const int64_t now, Sums &sums)
{
    struct Told {
        UserSums user;
        uint64_t recent;
    };
    std::vector<Told> told;
    for (uint32_t place = 0; place < ledger::Users; ++place) {
        const auto &entry = segment_->users[place];
        const auto key = entry.key.load(Relaxed), active = entry.active.load(Relaxed) & local;
        auto found = key == 0 ? users_.end() : users_.find(key);
        // Whatever is in the segment, keep no more users than it has room for.
        if (key == 0 || (found == users_.end() && (active == 0 || users_.size() == ledger::Users)))
            continue;
        const bool known = found != users_.end() && found->second.entry == place;
        auto &user = known ? found->second : users_[key];
        user.entry = place;
        const auto grown = look(user, entry, known ? local & local_ : 0);
        if (grown > 0 || active != 0)
            user.active = now;
        if (now - user.since >= Lately) {
            user.since = now;
            user.recent /= 2;
        }
        user.bytes += grown;
        user.recent += grown;
        if (now - user.active >= Lately)
            continue;
        uint64_t waiting = 0, items = 0;
        for (uint32_t n = 0; n < Slots; ++n) {
            const auto column = (active & Bit(n)) && n < Columns ? user.columns[n] : 0;
            waiting += ledger::ColumnWaiting(column);
            items += active & Bit(n) ? std::max<uint64_t>(ledger::ColumnItems(column), 1) : 0;
        }
        told.push_back({{key, user.bytes, Small(waiting), Small(items)}, user.recent});
    }
    for (auto user = users_.begin(); user != users_.end();)
        user = now - user->second.active >= Kept ? users_.erase(user) : std::next(user);
    // Users with work first: their service here counts towards their fair share elsewhere.
    const auto before = [](const Told &a, const Told &b) {
        return (a.user.items > 0) != (b.user.items > 0) ? a.user.items > 0 : a.recent > b.recent;
    };
    const auto most = std::min(told.size(), MostUsers);
    std::partial_sort(told.begin(), told.begin() + static_cast<ptrdiff_t>(most), told.end(), before);
    for (size_t n = 0; n < most; ++n)
        sums.users.push_back(told[n].user);
}

void SegmentBoard::show(const size_t n, const Sums &sums, const bool leads, const int64_t now)
{
    auto &other = others_[n];
    if (!segment_)
        return;
    if (other.slot && !other.slot->beat(now)) { // this process was stopped, and another one took the slot
        other.slot.reset();
        other.guests.clear();
    }
    if (!other.slot) {
        const auto free = ledger::OwnSlot::Free(*segment_, now);
        if (!free || *free >= Columns) { // without a column it could not report users
            ++crowded_;
            return;
        }
        other.slot = std::make_unique<ledger::OwnSlot>(*segment_, *free, Kind::Gateway, now);
    }
    auto &slot = *other.slot;
    Set(slot->places, sums.places);
    Set(slot->waiting, sums.waiting);
    Set(slot->queued, sums.queued);
    SetReal(slot->demand, sums.demand);
    Set(slot->received, sums.received);
    Set(slot->own, sums.own);
    Set(slot->metered, sums.metered);
    SetReal(slot->limit, sums.limit);
    SetReal(slot->rate, sums.rate);
    SetReal(slot->utilisation, sums.utilisation);
    Set(slot->target, static_cast<uint64_t>(sums.queue));
    Set(slot->config, sums.config);
    Set(slot->rank, leads ? ledger::LeadsUs : ledger::FollowsUs);
    showUsers(other, sums.users, now);
}

void SegmentBoard::showUsers(Other &other, const std::vector<UserSums> &users, const int64_t now)
{
    const auto living = ledger::Living(*segment_, now);
    for (const auto &user : users)
        showUser(other, user, living, now);
    for (auto next = other.guests.begin(); next != other.guests.end();) {
        auto &[key, guest] = *next;
        if (guest.active && guest.told != now) {
            ledger::SetActive(segment_->users[guest.entry], key, other.slot->number(), false);
            guest.active = false;
        }
        next = now - guest.told >= Kept ? other.guests.erase(next) : std::next(next);
    }
}

void SegmentBoard::showUser(Other &other, const UserSums &user, const uint64_t living, const int64_t now)
{
    const auto number = other.slot->number();
    if (other.guests.size() == ledger::Users && !other.guests.count(user.key)) {
        ++crowded_;
        return;
    }
    const auto [found, fresh] = other.guests.try_emplace(user.key);
    auto &guest = found->second;
    // The first count has no base; and counts are reset when their gateway restarts.
    const auto growth = user.bytes - guest.bytes;
    guest.bytes = user.bytes;
    guest.told = now;
    if (user.items > 0 && !guest.active) {
        guest.entry = ledger::TakeUser(*segment_, user.key, number, true, living);
        guest.active = guest.entry != ledger::NoEntry;
        crowded_ += guest.active ? 0 : 1;
    } else if (user.items == 0) {
        if (guest.active)
            ledger::SetActive(segment_->users[guest.entry], user.key, number, false);
        guest.active = false;
        guest.entry = ledger::Find(segment_->users, user.key);
    }
    if (guest.entry == ledger::NoEntry)
        return;
    auto &column = segment_->users[guest.entry].columns[number];
    const auto bytes = ledger::ColumnBytes(column.load(Relaxed)) + (!fresh && growth < MostGrowth ? growth : 0);
    Set(column, ledger::Column(bytes, user.items > 0 ? user.waiting : 0, user.items));
}

void SegmentBoard::hide(const size_t n)
{
    others_[n].slot.reset();
    others_[n].guests.clear();
}

} // namespace msfrs::share
