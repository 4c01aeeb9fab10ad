// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/buffer_share.h"

#include <algorithm>

namespace msfrs {

constexpr double Least = 1.0 / 16, Most = 1;
constexpr int Memory = 256; ///< smaller shares have a gain of 1/256, or more while there are few observations

void BufferShare::seen(const int64_t window, const int64_t buffer)
{
    if (window <= 0 || buffer <= 0)
        return;
    const double now = std::clamp(static_cast<double>(window) / static_cast<double>(buffer), Least, Most);
    seen_ = std::min(seen_ + 1, Memory);
    share_ = now > share_ ? now : share_ + (now - share_) / seen_;
}

int64_t BufferShare::bufferFor(const int64_t window) const
{
    return static_cast<int64_t>(static_cast<double>(window) / share_);
}

} // namespace msfrs
