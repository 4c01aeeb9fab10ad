// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/receiver.h"

#include "sim/link/link.h"

#include <algorithm>

namespace msfrs::sim::access {

constexpr msfrs_time Delay = 40 * Ms;
constexpr int64_t FirstTuned = 65536, MostTuned = 4 * 1024 * 1024;

Receiver::Receiver(Clock &clock, std::function<void(const Ack &)> acknowledge, std::function<void()> readable,
                   const int64_t buffer):
    clock_(clock), acknowledge_(std::move(acknowledge)), readable_(std::move(readable)), tuned_(buffer == 0),
    buffer_(tuned_ ? FirstTuned : buffer), clamp_(tuned_ ? MostTuned : buffer),
    threshold_(std::min<int64_t>(buffer_, 65535)), edge_(threshold_), delayed_(clock, [this] { this->acknowledge(); })
{
}

/// The window to offer now: __tcp_select_window().
int64_t Receiver::window() const
{
    auto room = buffer_ - unread();
    for (const auto &range : beyond_)
        room -= range.end - range.begin;
    if (room < buffer_ / 2 && room < std::max(buffer_ / 16, Mss))
        return 0;
    return std::min(room, threshold_);
}

void Receiver::take(const Range &range)
{
    if (range.begin > next_) {
        const auto place = std::find_if(beyond_.begin(), beyond_.end(),
                                        [&](const auto &r) { return r.begin >= range.begin; });
        if (place == beyond_.end() || place->begin != range.begin)
            beyond_.insert(place, range);
        return;
    }
    next_ = std::max(next_, range.end);
    while (!beyond_.empty() && beyond_.front().begin <= next_) {
        next_ = std::max(next_, beyond_.front().end);
        beyond_.erase(beyond_.begin());
    }
}

void Receiver::arrived(const Segment &segment)
{
    const auto before = next_;
    const bool gap = !beyond_.empty();
    const auto size = segment.bytes.end - segment.bytes.begin;
    ++packets_;
    outOfOrder_ += segment.bytes.begin > next_;
    arrivedAt_ = clock_.now();
    take(segment.bytes);
    if (size >= Mss)
        measure(segment.echo);
    threshold_ = std::max(threshold_, std::min({threshold_ + 2 * Mss, clamp_, buffer_})); // tcp_grow_window()
    pushed_ = segment.push || size < Mss;

    const bool more = next_ - acked_ > Mss;
    const bool open = unread() < lowWater_ || window() >= edge_ - acked_;
    if (gap || next_ == before || quick_ > 0 || (more && open))
        acknowledge();
    else if (!delayed_.running())
        delayed_.set(clock_.now() + Delay);
    quick_ -= quick_ > 0;
    if (next_ > before && readable())
        readable_();
}

/// The first segment that echoes an acknowledgement's timestamp gives a sample, in ms; the gain of the mean is 1/8.
void Receiver::measure(const msfrs_time echo)
{
    if (echo == lastEcho_)
        return;
    lastEcho_ = echo;
    const auto sample = std::max<msfrs_time>((clock_.now() / Ms - echo / Ms) * Ms, Ms);
    rtt_ = rtt_ == 0 || (takesLeast_ && sample < rtt_) ? sample : rtt_ + (sample - rtt_) / 8;
}

void Receiver::acknowledge()
{
    delayed_.stop();
    edge_ = std::max(edge_, next_ + window());
    acked_ = next_;
    acknowledge_({next_, edge_, clock_.now(), beyond_});
}

bool Receiver::readable() const
{
    return unread() > 0 && (unread() >= lowWater_ || edge_ - next_ <= Mss);
}

int64_t Receiver::read(const int64_t most)
{
    const auto bytes = std::min(most, unread());
    read_ += bytes;
    if (tuned_)
        tune();
    // tcp_cleanup_rbuf()
    const auto left = edge_ - next_;
    if (delayed_.running() && (next_ - acked_ > Mss || (pushed_ && unread() == 0)))
        acknowledge();
    else if (bytes > 0 && 2 * left <= clamp_ && window() > 0 && window() >= 2 * left)
        acknowledge();
    return bytes;
}

/// Twice what was read in a round trip: tcp_rcv_space_adjust().
void Receiver::tune()
{
    if (rtt_ == 0 || clock_.now() - tunedAt_ < rtt_)
        return;
    const auto wanted = std::min(2 * (read_ - tunedRead_) + 16 * Mss, MostTuned);
    buffer_ = std::max(buffer_, wanted);
    tunedAt_ = clock_.now();
    tunedRead_ = read_;
}

int64_t Receiver::setLowWater(const int64_t bytes)
{
    return lowWater_ = tuned_ ? bytes : std::min(bytes, buffer_ * 4 / 5); // half of it, of which 5/8 are the window
}

void Receiver::clampWindow(const int64_t bytes)
{
    if (bytes < clamp_)
        threshold_ = std::min(threshold_, bytes);
    else
        threshold_ = std::max(threshold_, std::min(edge_ - acked_, bytes));
    clamp_ = bytes;
}

} // namespace msfrs::sim::access
