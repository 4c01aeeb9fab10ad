// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// For schedulers that save their figures: calls msfrs_move::put.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <array>
#include <cstddef>

namespace msfrs {

template <size_t N>
void Put(const msfrs_move &move, const msfrs_owner &whose, const std::array<double, N> &figures)
{
    static_assert(N <= MSFRS_MOST_KEPT);
    move.put(move.ctx, &whose, figures.data(), N);
}

} // namespace msfrs
