// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Packets that visit two resources in turn, a processor and then a link, in the order of one scheduler:
///
///     classify -> AQM -> scheduler -> function (processor, at most its share) -> pacer (link) -> verdict
///
/// The packets themselves stay in the kernel. The box holds copies for the functions, and the number of each packet for
/// its verdict. It knows nothing of netlink and reads no clock except that of processor time, which is passed in.
#pragma once

#include "edge/daemon/packet_path.h"
#include "satellites/middlebox/cpu_stage.h"

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace msfrs::middlebox {

/// Counts of a class. At all times: offered = dropped + passed + queued.
struct BoxCounts {
    edge::Volume offered, dropped, passed;

    uint64_t waiting() const { return offered.packets - dropped.packets - passed.packets; }
};

class Box {
public:
    /// \param schedule of two resources; see edge::Schedule \param random, cpuTime see CpuStage
    Box(std::unique_ptr<edge::Schedule> schedule, const CpuConfig &, const std::function<uint64_t()> &random,
        std::function<int64_t()> cpuTime, edge::Verdicts &, msfrs_time now);
    ~Box();
    Box(const Box &) = delete;

    /// Accepts a packet, and releases all packets that are due.
    void arrive(const edge::Arrival &, msfrs_time now);
    /// Releases all packets that are due.
    void service(msfrs_time now);
    /// When service() has something to do; nothing while no packet is queued.
    std::optional<msfrs_time> next() const;
    /// Releases all queued packets, in the scheduler's order, without functions and without pacing.
    void flush(msfrs_time now);

    /// By class, as in edge::Config::classes.
    const std::vector<BoxCounts> &counts() const { return counts_; }
    const edge::Schedule &schedule() const { return *schedule_; }
    const CpuStage &cpu() const { return cpu_; }
    /// All counts, as text for people.
    std::string report() const;

private:
    struct Packet {
        edge::Traits traits;
        uint32_t id = 0;
        size_t cls = 0;
        std::vector<uint8_t> bytes; ///< until its function has processed it
        std::list<Packet>::iterator self;
    };

    std::optional<size_t> functionOf(const Packet &) const;
    void process(msfrs_item &, msfrs_time now);
    void release(msfrs_item &, msfrs_time now);
    void lose(Packet &);

    /// Most packets that have been processed and wait for the link. A few, so that neither resource waits for the
    /// other; no more, since their order is final.
    static constexpr size_t MostProcessed = 4;

    std::unique_ptr<edge::Schedule> schedule_;
    CpuConfig config_;
    CpuStage cpu_;
    edge::Verdicts &verdicts_;
    edge::Pacer pacer_;
    std::vector<BoxCounts> counts_;
    std::vector<std::optional<size_t>> functions_; ///< by class: index into CpuConfig::functions
    std::list<Packet> packets_;
    std::deque<msfrs_item *> processed_;
    bool processorIdle_ = true;
    std::optional<msfrs_time> retry_; ///< when to ask the scheduler again
    std::function<bool(msfrs_item &)> victim_; ///< drops a queued item
    Engine::Lost lost_;                        ///< drops an item that was picked
};

} // namespace msfrs::middlebox
