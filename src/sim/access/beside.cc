// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/beside.h"

#include <cmath>

namespace msfrs::sim::access {

constexpr int64_t Answer = 1000;             ///< bytes of a thinking server's
constexpr msfrs_time Packet = 20 * Ms;       ///< between two records of a stream, as between packets of voice
constexpr msfrs_time Apart = 100 * Ms;       ///< between the starts of two streams

Beside::Beside(Clock &clock, Fetch fetching, Clients &clients, const BesideParams &params, const uint32_t cls,
               const uint32_t servers, const double seconds):
    clock_(clock), fetch_(std::move(fetching)), params_(params), cls_(cls), servers_(servers), seconds_(seconds)
{
    ask(params.silent, Never, params.silentUsers, 0);
    ask(params.thinking, params.thinks, 1, 0);
    const auto bytes = std::lround(params.streamRate / 8 * Seconds(Packet));
    for (uint32_t n = 0; n < params.streams; ++n) {
        clock.after(n * Apart, [&clients, bytes, wish = Wish{cls, "stream-" + std::to_string(n + 1), n % servers, 0}] {
            clients.stream(wish, bytes, Packet);
        });
    }
}

/// Sends request `number` when it is due, and then the next.
void Beside::ask(const double rate, const msfrs_time thinks, const uint32_t users, const uint64_t number)
{
    const double due = static_cast<double>(number) / rate;
    if (rate == 0 || due >= seconds_)
        return;
    clock_.at(static_cast<msfrs_time>(due * 1e9), [this, rate, thinks, users, number] {
        const auto user = (thinks == Never ? "silent-" : "thinking-") + std::to_string(number % users + 1);
        fetch_({cls_, user, static_cast<uint32_t>(number % servers_), Answer, {}, thinks},
               {[](int64_t) {}, [](bool) {}});
        ask(rate, thinks, users, number + 1);
    });
}

} // namespace msfrs::sim::access
