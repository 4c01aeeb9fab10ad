// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/user_order.h"

#include "edge/daemon/packet_path.h"

#include <functional>
#include <string_view>
#include <utility>

namespace msfrs::edge {

void UserOrder::queued(msfrs_item &item, Held &h, const int64_t bytes)
{
    h.item = &item;
    h.connection = 0;
    h.bytes = bytes;
    if (h.traits.owner.user == 0)
        return;
    h.connection = std::hash<std::string_view>()(FlowRule().nameOf(h.traits.key).view());
    auto &queue = users_[h.traits.owner.user];
    auto &connection = queue.connections[h.connection];
    (connection.bytes < Early ? queue.early : queue.rest).push_back(&h);
    connection.bytes += bytes;
    connection.queued += bytes;
}

bool UserOrder::overshoots(const Held &h, const int64_t most)
{
    const auto user = users_.find(h.traits.owner.user);
    if (user == users_.end())
        return false;
    const auto found = user->second.connections.find(h.connection);
    if (found == user->second.connections.end() || found->second.queued <= most)
        return false;
    return !std::exchange(found->second.told, true);
}

/// The first or last packet of a list takes the host's turn, and the host takes that one's.
/// \param earlyFirst from which list, if both have packets
Held &UserOrder::take(Held &host, const bool earlyFirst, const bool newest)
{
    const auto found = users_.find(host.traits.owner.user);
    if (found == users_.end())
        return host;
    auto &queue = found->second;
    const bool early = earlyFirst ? !queue.early.empty() : queue.rest.empty();
    auto &list = early ? queue.early : queue.rest;
    auto &h = newest ? *list.back() : *list.front();
    if (newest)
        list.pop_back();
    else
        list.pop_front();
    const auto connection = queue.connections.find(h.connection);
    connection->second.queued -= h.bytes;
    if (connection->second.queued == 0)
        queue.connections.erase(connection);
    if (queue.connections.empty())
        users_.erase(found);
    if (&h != &host) {
        std::swap(h.item, host.item);
        host.item->host = &host;
    }
    return h;
}

} // namespace msfrs::edge
