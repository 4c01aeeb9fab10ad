// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/others.h"

namespace msfrs::sim::access {

constexpr int64_t Endless = int64_t(1) << 50;
constexpr msfrs_time Apart = 100 * Ms; ///< between the starts of two downloads

Others::Others(Clock &clock, Link &link, const OthersParams &params, const std::vector<ServerPath> &paths):
    clock_(clock), link_(link), params_(params)
{
    for (uint32_t n = 0; n < params.downloads; ++n) {
        const auto server = static_cast<uint32_t>(n * paths.size() / params.downloads);
        connections_.push_back(std::make_unique<Connection>(clock, link, server, paths[server], 0));
    }
    if (!connections_.empty())
        clock.at(params.from, [this] { beginDownloads(); });
    if (params.constant > 0)
        clock.at(params.from, [this] { sendStream(); });
}

void Others::beginDownloads()
{
    msfrs_time wait = 0;
    for (const auto &each : connections_) {
        auto &connection = *each;
        connection.onOpen = [&connection] { connection.request(Endless); };
        connection.onReadable = [this, &connection] { received_ += connection.receiver().read(Endless); };
        clock_.after(wait, [&connection] { connection.open(); });
        clock_.at(params_.until, [&connection] { connection.receiver().clampWindow(0); });
        wait += Apart;
    }
}

void Others::sendStream()
{
    if (clock_.now() >= params_.until)
        return;
    link_.send(FullFrame, [this] { stream_ += FullFrame; });
    const double apart = FullFrame * 8 / (link_.rate() * params_.constant); // s
    clock_.after(static_cast<msfrs_time>(apart * 1e9), [this] { sendStream(); });
}

} // namespace msfrs::sim::access
