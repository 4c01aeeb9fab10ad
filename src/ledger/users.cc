// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/users.h"

namespace msfrs::ledger {

bool SetActive(User &user, const uint64_t key, const uint32_t slot, const bool active)
{
    const uint64_t bit = Bit(slot);
    if (active)
        user.active.fetch_or(bit);
    const bool same = user.key.load() == key;
    if (active != same) // cleared as asked, or taken back
        user.active.fetch_and(~bit);
    return same;
}

uint32_t TakeUser(Segment &segment, const uint64_t key, const uint32_t slot, const bool active, const uint64_t living)
{
    for (int attempt = 0; attempt < Attempts; ++attempt) {
        const auto known = Find(segment.users, key);
        if (known != NoEntry) {
            if (!active || SetActive(segment.users[known], key, slot, true))
                return known;
            continue;
        }
        for (uint32_t n = 0; n < Probes; ++n) {
            const auto place = Place(segment.users, key, n);
            auto &user = segment.users[place];
            auto before = user.key.load();
            const auto dead = user.active.load();
            if (before != 0 && (dead & living))
                continue;
            if (!user.key.compare_exchange_strong(before, key))
                break; // perhaps for the same user: look again
            user.active.fetch_and(~dead); // bits of parties that have died
            if (!active || SetActive(user, key, slot, true))
                return place;
            break;
        }
    }
    return NoEntry;
}

uint64_t ElsewhereBytes(const User &user, const uint32_t slot)
{
    uint64_t sum = 0;
    for (uint32_t column = 0; column < Columns; ++column)
        sum += column == slot ? 0 : ColumnBytes(user.columns[column].load(Relaxed));
    return sum;
}

} // namespace msfrs::ledger
