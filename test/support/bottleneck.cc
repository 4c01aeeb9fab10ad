// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/bottleneck.h"

#include <algorithm>

namespace msfrs::test {

Bottleneck::Bottleneck(const Variant &sched, const Variant &aqm, const double rate, const uint32_t limit,
                       const uint64_t seed):
    host_(seed), port_(clock_, 8 * rate, sched.load(), aqm.load(), limit, host_.engine()), rate_(rate)
{
    port_.sent = [this](const msfrs_item &item) {
        auto &s = *static_cast<Source *>(item.host);
        s.delivered += s.size;
        delivered_ += static_cast<double>(s.size);
        busy_ += static_cast<double>(s.size) / rate_;
        transmit();
    };
}

Bottleneck::Source &Bottleneck::constant(msfrs_flow &f, const double rate, const uint32_t burst, const int64_t size)
{
    auto &s = adaptive(f, 0, size);
    s.rate = rate;
    s.burst = burst;
    return s;
}

Bottleneck::Source &Bottleneck::adaptive(msfrs_flow &f, const msfrs_time rtt, const int64_t size)
{
    sources_.push_back(std::make_unique<Source>());
    auto &s = *sources_.back();
    s.flow = &f;
    s.size = size;
    s.rtt = rtt;
    clock_.after(static_cast<msfrs_time>(host_.random().below(10 * Ms)), [this, &s] { send(s); });
    return s;
}

void Bottleneck::send(Source &s)
{
    const int64_t est[MSFRS_RESOURCES] = {s.size};
    msfrs_item *item;
    ++s.sent;
    const auto verdict = engine().offer(*s.flow, est, &s, now(), item, [](msfrs_item &i) {
        auto &victim = *static_cast<Source *>(i.host);
        ++victim.lost;
        victim.hit = true;
        return true;
    }, flags_);
    s.lost += verdict == Engine::Offer::Dropped;
    s.marked += verdict == Engine::Offer::Marked;
    s.hit = s.hit || verdict != Engine::Offer::Queued;
    transmit();
    clock_.after(gap(s), [this, &s] { send(s); });
}

/// Time until the source's next packet.
msfrs_time Bottleneck::gap(Source &s)
{
    constexpr double Faster = 10; // times the bottleneck's rate: that of the links from which bursts and windows come
    double seconds = static_cast<double>(s.size) / (Faster * rate_);
    if (s.left > 0) {
        --s.left;
    } else if (s.rate > 0) {
        s.left = s.burst - 1;
        seconds = static_cast<double>(s.size * s.burst) / s.rate;
    } else {
        s.window = s.hit ? std::max(s.window / 2, 1.0) : s.window + 1;
        s.hit = false;
        s.left = static_cast<uint32_t>(s.window) - 1;
        seconds = static_cast<double>(s.rtt) * 1e-9 + static_cast<double>(engine().totals().queued.cost) / rate_;
    }
    const double shaken = 0.5 + static_cast<double>(host_.random().below(1'000'000)) * 1e-6;
    return std::max<msfrs_time>(static_cast<msfrs_time>(seconds * shaken * 1e9), 1);
}

void Bottleneck::transmit()
{
    port_.transmit([](void *const source) {
        auto &s = *static_cast<Source *>(source);
        ++s.lost;
        s.hit = true;
    });
}

void Bottleneck::startMeasuring()
{
    for (auto &s : sources_)
        s->sent = s->lost = s->marked = static_cast<uint64_t>(s->delivered = 0);
    delivered_ = busy_ = 0;
}

} // namespace msfrs::test
