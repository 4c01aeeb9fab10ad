// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/read_batch.h"

#include <algorithm>

namespace msfrs {

/// Three segments. With a receive buffer of half a quantum, so much may wait unread while the sender continues.
constexpr int64_t BatchBytes = 4096;

void ReadBatch::prepare(const int64_t rest, const bool worthwhile)
{
    const bool on = lowWater_ > 1;
    if (worthwhile && !silent_ && rest >= BatchBytes)
        lowWater_ = BatchBytes;
    else
        lowWater_ = on && rest > 0 ? std::min(lowWater_, rest) : 1; // one read to the end
    read_ = read_ || !on;
    rest_ = rest;
}

void ReadBatch::noteRead(const int64_t bytes)
{
    read_ = true;
    rest_ -= bytes;
    if (rest_ <= 0)
        lowWater_ = 1; // before the connection serves another request
}

void ReadBatch::check()
{
    if (lowWater_ == 1)
        return;
    silent_ = !read_;
    read_ = false;
    if (silent_)
        lowWater_ = 1;
}

void ReadBatch::stop()
{
    lowWater_ = 1;
    silent_ = false;
}

} // namespace msfrs
