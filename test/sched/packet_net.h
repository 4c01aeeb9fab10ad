// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Links in series, each with a scheduler, in whole ticks and bytes, so that a bound can be checked exactly: rates are
/// whole numbers of bytes in `Scale` ticks. A tick is a nanosecond to the link.
#pragma once

#include "sim/link/port.h"
#include "support/host.h"
#include "support/plugins.h"

#include <functional>
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
            nodes_.push_back(std::make_unique<Node>(*this, scheduler, ticks));
    }

    /// A packet arrives at its first node; times must not decrease.
    void send(const size_t flow, const int64_t length, const int64_t at)
    {
        runTo(at);
        enter(std::make_unique<NetPacket>(NetPacket{flow, flows_[flow].first, length, at}));
    }
    /// Serves all packets to their end.
    void runOut()
    {
        for (start(); const auto next = clock_.next(); start())
            clock_.run(*next);
    }
    /// Serves until the time, excluding picks at that time: more packets may arrive then.
    void runTo(const int64_t at)
    {
        while (now() < at) {
            start();
            clock_.run(std::min(clock_.next().value_or(at), at));
        }
    }

    int64_t now() const { return clock_.now(); }
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
        Node(PacketNet &net, const std::string &scheduler, const int64_t ticks):
            port(net.clock_, 8e9 / static_cast<double>(ticks), ParseVariant(scheduler).load(), {}, 0,
                 net.host_.engine())
        {
            port.sent = [&net](const msfrs_item &item) { net.leave(static_cast<NetPacket *>(item.host)); };
            msfrs_class *common = nullptr;
            for (size_t n = 0; n < net.flows_.size(); ++n) {
                const auto rate = static_cast<double>(net.flows_[n].rate);
                const auto name = std::to_string(n);
                if (!common && !net.flows_[n].ownClass)
                    common = port.engine.addClass("common", 1);
                flows.push_back(net.flows_[n].ownClass
                                    ? &port.engine.flow(*port.engine.addClass(name, rate), name)
                                    : &port.engine.flow(*common, name, rate));
            }
        }
        sim::Port port;
        std::vector<msfrs_flow *> flows;
    };

    void enter(std::unique_ptr<NetPacket> packet)
    {
        auto &node = *nodes_[packet->node];
        auto &flow = *node.flows[packet->flow];
        const auto length = packet->length;
        msfrs_item *item;
        node.port.engine.offer(flow, &length, packet.release(), now(), item);
    }

    /// Idle links pick their next packet, after all arrivals of this time.
    void start()
    {
        for (auto &node : nodes_)
            node->port.transmit();
    }

    void leave(NetPacket *const left)
    {
        std::unique_ptr<NetPacket> packet(left);
        if (onLeft)
            onLeft(*packet);
        if (packet->node++ < flows_[packet->flow].last)
            enter(std::move(packet));
        else if (onArrived)
            onArrived(*packet);
    }

    std::vector<PacketFlow> flows_;
    Host host_;
    sim::Clock clock_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

} // namespace msfrs::test
