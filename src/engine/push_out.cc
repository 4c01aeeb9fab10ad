// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/push_out.h"

#include <cassert>

namespace msfrs {

void Engine::pushOut(const int64_t packet)
{
    assert(classList_.empty() && (!aqmOps_ || (aqm()->flags & MSFRS_NO_LIMIT)));
    pushOut_ = std::make_unique<PushOut>(packet);
}

bool Engine::makeRoom(msfrs_flow &f, const int64_t cost, const msfrs_time now,
                      const std::function<bool(msfrs_item &)> &victim)
{
    if (!pushOut_)
        return false;
    const auto &longest = pushOut_->longest(static_cast<NamedFlow &>(f), cost);
    auto *const last = longest.tail;
    if (&longest == &f || (victim && !victim(*last)))
        return false;
    remove(*last, now, MSFRS_DROPPED);
    return true;
}

} // namespace msfrs
