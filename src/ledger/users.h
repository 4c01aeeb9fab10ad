// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The table of users in a segment. Lock-free: an entry changes its user by one compare-and-swap, and a party that sets
/// a bit in it checks the user again.
#pragma once

#include "ledger/segment.h"

namespace msfrs::ledger {

/// Searches of a table by one call, if other parties take each entry found; then the call has no entry, and the next
/// one searches again.
constexpr int Attempts = 4;

/// Finds a user or takes an entry for it: a free one, or one whose user has work at no live party.
/// \param active sets the bit of `slot`, without which the entry may go to another user at any time
/// \param living see Living()
/// \returns NoEntry if all entries of its probes are in use
uint32_t TakeUser(Segment &, uint64_t key, uint32_t slot, bool active, uint64_t living);

/// Sets or clears the bit of a slot. \returns false, with nothing set, if the entry belongs to another user by now
bool SetActive(User &, uint64_t key, uint32_t slot, bool active);

/// Bytes in all columns but that of `slot`, modulo 2^40: only differences are meaningful.
uint64_t ElsewhereBytes(const User &, uint32_t slot);

} // namespace msfrs::ledger
