// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/receive_window.h"

#include <algorithm>

namespace msfrs {

/// Least window, in segments of the server. Into a window of less than one segment a server sends only as its persist
/// timer allows, which backs off to two minutes while we pause. A window of one is shut until all of it was read.
constexpr int64_t LeastSegments = 2;

/// The largest unscaled window. The scale was derived from the first buffer, in steps of 64 KB times a power of two.
constexpr int64_t Unscaled = 65535;

bool ReceiveWindow::due(const int64_t quantum)
{
    if (untilFitting_ > 0)
        return false;
    untilFitting_ = std::max<int64_t>(quantum, 1);
    return true;
}

void ReceiveWindow::fit(ServerConnection &server, const int64_t buffered, int64_t wanted)
{
    auto most = Unscaled;
    while (most < buffered)
        most *= 2;
    wanted = std::min(wanted, most);
    if (wanted <= bound_ / 4 * 5 && wanted >= bound_ / 4 * 3)
        return; // by less than a quarter: not worth the system calls; twice as much makes queues a tenth longer
    wanted = std::max(wanted, std::min(LeastSegments * server.segment(), most));
    if (wanted == bound_)
        return;
    bound_ = wanted;
    server.setWindow(wanted);
}

} // namespace msfrs
