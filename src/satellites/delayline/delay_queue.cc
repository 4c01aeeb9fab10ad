// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/delayline/delay_queue.h"

#include <algorithm>

namespace msfrs::delayline {

bool DelayQueue::push(size_t stream, Packet &&packet, Nanoseconds delay, Nanoseconds now)
{
    offered_.add(packet.size());
    const size_t cost = packet.size() + Overhead;
    if (cost > limit_ - held_) {
        dropped_.add(packet.size());
        return false;
    }
    if (stream >= streams_.size())
        streams_.resize(stream + 1);
    auto &fifo = streams_[stream];
    const auto due = fifo.empty() ? now + delay : std::max(now + delay, fifo.back().due);
    held_ += cost;
    fifo.push_back({due, arrivals_++, std::move(packet)});
    if (fifo.size() == 1)
        enterHeap(stream);
    return true;
}

std::optional<Nanoseconds> DelayQueue::nextDue() const
{
    if (heap_.empty())
        return {};
    return heap_.front().due;
}

std::optional<Packet> DelayQueue::pop(Nanoseconds now)
{
    if (heap_.empty() || heap_.front().due > now)
        return {};
    const auto stream = heap_.front().stream;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    auto &fifo = streams_[stream];
    Packet packet = std::move(fifo.front().packet);
    fifo.pop_front();
    if (!fifo.empty())
        enterHeap(stream);
    held_ -= packet.size() + Overhead;
    delivered_.add(packet.size());
    return packet;
}

void DelayQueue::enterHeap(size_t stream)
{
    const auto &head = streams_[stream].front();
    heap_.push_back({head.due, head.arrival, stream});
    std::push_heap(heap_.begin(), heap_.end());
}

} // namespace msfrs::delayline
