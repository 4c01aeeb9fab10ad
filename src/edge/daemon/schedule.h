// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A configuration in effect: the engine with its plugins and classes, and the mapping of packets to flows.
#pragma once

#include "edge/daemon/config.h"
#include "edge/packet.h"
#include "engine/engine.h"
#include "ledger/directory.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

namespace msfrs::edge {

/// The fields of a packet's headers.
struct Traits {
    FlowKey key;              ///< as on the link
    FlowKey origin;           ///< original tuple of its connection, if the kernel reports it; otherwise key
    bool readable = false;    ///< it has an IP header; otherwise the keys are meaningless
    bool ack = false;         ///< a pure TCP acknowledgement: no data, no SYN, FIN or RST
    bool data = false;        ///< a TCP segment with data
    uint8_t dscp = 0, ecn = 0;
    uint32_t length = 0;      ///< bytes from the IP header
    uint32_t headers = 0;     ///< bytes of each of its segments that are not payload
    size_t transport = 0;     ///< offset of the transport header, as by ReadKey()
    PerHop perHop = PerHop::Be; ///< from the conditioner; only with rules
    ledger::Owner owner;      ///< according to Squid; user 0: none. An unknown class is the default one
};

class Schedule {
public:
    /// \param resources that packets visit; the first is the link
    /// \throws ConfigError if a plugin rejects its parameters or does not fit
    Schedule(std::shared_ptr<const Config>, EngineHost, uint32_t resources = 1);

    /// Tests the configuration. \throws RuleError with the line
    static void Check(const Config &, const std::string &file);

    const Config &config() const { return *config_; }
    Engine &engine() { return *engine_; }
    const Engine &engine() const { return *engine_; }

    /// Index into Config::classes.
    size_t classOf(const Traits &) const;
    /// The flow of a packet in a class. Once there are MostFlows, new ones share one flow per class.
    NamedFlow &flowOf(const Traits &, size_t cls);
    msfrs_class &classAt(const size_t n) const { return *classes_[n]; }
    /// The flow's user, as a key of the ledger; 0: the flow is of an address or a connection.
    static uint64_t userOf(const NamedFlow &);

    /// Takes the next packet into service. \param lost sees those that the AQM drops
    /// \returns null: none, or none before the time in `retry`, which is empty otherwise
    msfrs_item *pick(msfrs_time now, const Engine::Lost &lost, std::optional<msfrs_time> &retry);
    /// Takes all of them, one after the other, each at the time at which the scheduler lets it go.
    void pickAll(msfrs_time now, const Engine::Lost &lost, const std::function<void(msfrs_item &, msfrs_time)> &taken);

    /// Frees flows that have been idle for long.
    void forget(msfrs_time now);
    static constexpr size_t MostFlows = 65536; ///< bounds memory

private:
    std::shared_ptr<const Config> config_;
    std::unique_ptr<Engine> engine_;
    std::vector<msfrs_class *> classes_; ///< as in Config::classes
    std::array<size_t, std::size(PerHopClasses)> perHop_{};
    std::unordered_map<uint64_t, size_t> told_; ///< by ledger::ClassKey(), for a party
};

} // namespace msfrs::edge
