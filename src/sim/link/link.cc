// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/link/link.h"

#include <algorithm>
#include <cmath>

namespace msfrs::sim {

Link::Link(Clock &clock, const double rate, const int64_t buffer, const double bucket):
    clock_(clock), rate_(rate), buffer_(std::max(buffer, 2 * FullFrame)), next_(clock, [this] { serve(); }),
    bucket_(bucket), tokens_(bucket)
{
    measureQueue();
}

bool Link::send(const int64_t bytes, Clock::Event arrives)
{
    ++counts_.offeredFrames;
    counts_.offered += bytes;
    if (backlog_ + bytes > buffer_) {
        ++counts_.droppedFrames;
        counts_.dropped += bytes;
        return false;
    }
    note();
    if (frames_.empty())
        fill(); // for no frame: a wire saves nothing
    frames_.push_back({bytes, std::move(arrives), clock_.now()});
    backlog_ += bytes;
    if (!next_.running())
        serve();
    return true;
}

void Link::fill()
{
    const auto now = clock_.now();
    const auto most = bucket_ > 0 || frames_.empty() ? bucket_ : static_cast<double>(frames_.front().bytes);
    tokens_ = std::min(most, tokens_ + Seconds(now - tokensAt_) * rate_ / 8);
    tokensAt_ = now;
}

void Link::setRate(const double rate)
{
    fill();
    note();
    rate_ = rate;
    varies_ = true;
    next_.stop();
    serve();
}

void Link::serve()
{
    fill();
    const auto now = clock_.now();
    while (!frames_.empty()) {
        auto &frame = frames_.front();
        const auto bytes = static_cast<double>(frame.bytes);
        if (tokens_ + 1e-6 < bytes) { // tolerance for rounding
            if (rate_ > 0)
                next_.set(now + static_cast<msfrs_time>(std::ceil((bytes - tokens_) * 8e9 / rate_)));
            return;
        }
        tokens_ = bucket_ > 0 ? tokens_ - bytes : 0;
        note();
        backlog_ -= frame.bytes;
        ++counts_.carriedFrames;
        counts_.carried += frame.bytes;
        clock_.at(now, std::move(frame.arrives));
        frames_.pop_front();
    }
}

/// s
double Link::queueNow() const
{
    if (varies_)
        return frames_.empty() ? 0 : Seconds(clock_.now() - frames_.front().came);
    return static_cast<double>(backlog_) * 8 / rate_;
}

/// Records the queue, which has not changed since the last call.
void Link::note() const
{
    const auto time = clock_.now() - noted_;
    noted_ = clock_.now();
    const double queue = queueNow();
    queueTime_ += queue * static_cast<double>(time);
    const auto bin = static_cast<size_t>(queue * 1e3);
    if (bin >= queued_.size())
        queued_.resize(bin + 1);
    queued_[bin] += time;
}

void Link::measureQueue()
{
    note();
    queued_.clear();
    queueTime_ = 0;
    measured_ = clock_.now();
}

double Link::meanQueue() const
{
    note();
    return noted_ > measured_ ? queueTime_ / static_cast<double>(noted_ - measured_) : 0;
}

double Link::queueQuantile(const double share) const
{
    note();
    const double wanted = share * static_cast<double>(noted_ - measured_);
    double sum = 0;
    for (size_t bin = 0; bin < queued_.size(); ++bin) {
        sum += static_cast<double>(queued_[bin]);
        if (sum >= wanted)
            return static_cast<double>(bin + 1) * 1e-3;
    }
    return 0;
}

} // namespace msfrs::sim
