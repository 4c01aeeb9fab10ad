// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Links in series, each with a scheduler, in whole ticks and bytes, so that a bound can be checked exactly: rates are
/// whole numbers of bytes in `Scale` ticks.
#ifndef MSFRS_TEST_SCHED_PACKET_NET_H
#define MSFRS_TEST_SCHED_PACKET_NET_H

#include "support/plugins.h"

#include "support/host.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace msfrs::test {

constexpr int64_t Scale = 64;

struct PacketFlow {
    int64_t rate = 1;              ///< r: bytes in Scale ticks; the weight
    size_t first = 0, last = 0;    ///< nodes that it passes
    bool ownClass = false;         ///< in a class of its own, or a flow of the common class
};

struct NetPacket {
    size_t flow = 0, node = 0;
    int64_t length = 0, arrived = 0; ///< at its first node
};

class PacketNet {
public:
    /// \param ticksPerByte of each node: 1 / C
    PacketNet(const std::string &scheduler, std::vector<int64_t> ticksPerByte, std::vector<PacketFlow> flows):
        flows_(std::move(flows)), host_(1)
    {
        for (const auto ticks : ticksPerByte)
            nodes_.push_back(std::make_unique<Node>(scheduler, ticks, flows_, host_));
    }

    /// A packet arrives at its first node; times must not decrease.
    void send(const size_t flow, const int64_t length, const int64_t at)
    {
        runUntil(at, false);
        now_ = at;
        enter(std::make_unique<NetPacket>(NetPacket{flow, flows_[flow].first, length, at}));
    }
    /// Serves all packets to their end.
    void runOut() { runUntil(std::numeric_limits<int64_t>::max(), true); }
    /// Serves until the time, excluding picks at that time: more packets may arrive then.
    void runTo(const int64_t at) { runUntil(at, false); }

    int64_t now() const { return now_; }
    /// Packets of a flow at a node, including the one in service.
    uint32_t backlog(const size_t node, const size_t flow) const
    {
        const auto f = nodes_[node]->flows[flow];
        return f->backlog + f->in_service;
    }
    std::function<void(const NetPacket &)> onLeft;    ///< served by a node
    std::function<void(const NetPacket &)> onArrived; ///< served by its last node

private:
    struct Node {
        Node(const std::string &scheduler, const int64_t t, const std::vector<PacketFlow> &all, Host &host):
            ticks(t), engine(ParseVariant(scheduler).load(), {}, Engine::Cost::Exact, 1, 0, host.engine())
        {
            msfrs_class *common = nullptr;
            for (size_t n = 0; n < all.size(); ++n) {
                const auto rate = static_cast<double>(all[n].rate);
                const auto name = std::to_string(n);
                if (!common && !all[n].ownClass)
                    common = engine.addClass("common", 1);
                flows.push_back(all[n].ownClass ? &engine.flow(*engine.addClass(name, rate), name)
                                                : &engine.flow(*common, name, rate));
            }
        }
        int64_t ticks;
        Engine engine;
        std::vector<msfrs_flow *> flows;
        msfrs_item *serving = nullptr;
        int64_t end = 0; ///< of the service
    };

    void enter(std::unique_ptr<NetPacket> packet)
    {
        auto &node = *nodes_[packet->node];
        auto &flow = *node.flows[packet->flow];
        const auto length = packet->length;
        msfrs_item *item;
        node.engine.offer(flow, &length, packet.release(), now_, item);
    }

    /// Idle links pick their next packet, after all arrivals of this time.
    void start()
    {
        for (auto &node : nodes_) {
            msfrs_time wake = 0;
            if (!node->serving && (node->serving = node->engine.pick(now_, MSFRS_PICK_ANY, wake)))
                node->end = now_ + static_cast<NetPacket *>(node->serving->host)->length * node->ticks;
        }
    }

    void runUntil(const int64_t until, const bool including)
    {
        for (;;) {
            if (now_ < until || including)
                start();
            int64_t next = std::numeric_limits<int64_t>::max();
            for (const auto &node : nodes_)
                next = node->serving ? std::min(next, node->end) : next;
            if (next > until || next == std::numeric_limits<int64_t>::max())
                break;
            now_ = next;
            for (auto &node : nodes_) {
                if (node->serving && node->end == now_)
                    leave(*node);
            }
        }
    }

    void leave(Node &node)
    {
        std::unique_ptr<NetPacket> packet(static_cast<NetPacket *>(node.serving->host));
        node.engine.done(*node.serving, now_);
        node.serving = nullptr;
        if (onLeft)
            onLeft(*packet);
        if (packet->node++ < flows_[packet->flow].last)
            enter(std::move(packet));
        else if (onArrived)
            onArrived(*packet);
    }

    std::vector<PacketFlow> flows_;
    Host host_;
    std::vector<std::unique_ptr<Node>> nodes_;
    int64_t now_ = 0;
};

} // namespace msfrs::test

#endif
