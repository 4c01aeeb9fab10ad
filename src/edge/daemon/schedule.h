// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A configuration at work: the engine with its plugins and classes, and who belongs where.
#ifndef MSFRS_EDGE_DAEMON_SCHEDULE_H
#define MSFRS_EDGE_DAEMON_SCHEDULE_H

#include "edge/daemon/config.h"
#include "edge/packet.h"
#include "engine/engine.h"
#include "ledger/directory.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

namespace msfrs::edge {

/// What is known of a packet once its headers were read.
struct Traits {
    FlowKey key;              ///< as it is on the link
    FlowKey origin;           ///< as its connection was begun, where the kernel tells; otherwise key
    bool readable = false;    ///< it has an IP header; otherwise the keys say nothing
    bool ack = false;         ///< a segment of TCP that carries nothing: acknowledgement, or opening or closing
    bool data = false;        ///< a segment of TCP that carries something
    uint8_t dscp = 0, ecn = 0;
    uint32_t length = 0;      ///< bytes from the IP header
    PerHop perHop = PerHop::Be; ///< what the conditioner says; only with rules
    ledger::Owner owner;      ///< as Squid has it; user 0: nobody's. A class that is not here is the default one
};

class Schedule {
public:
    /// \param resources that packets visit; the first is the link
    /// \throws ConfigError when a plugin refuses its parameters or does not fit
    Schedule(std::shared_ptr<const Config>, EngineHost, uint32_t resources = 1);

    /// Tries the configuration out. \throws RuleError with the line
    static void Check(const Config &, const std::string &file);

    const Config &config() const { return *config_; }
    Engine &engine() { return *engine_; }
    const Engine &engine() const { return *engine_; }

    /// Index into Config::classes.
    size_t classOf(const Traits &) const;
    /// The flow of a packet in a class. Once there are MostFlows, what is new shares one flow a class.
    NamedFlow &flowOf(const Traits &, size_t cls);
    msfrs_class &classAt(const size_t n) const { return *classes_[n]; }
    /// The user whose flow it is, as the ledger knows it; 0: it is that of an address or a connection.
    static uint64_t userOf(const NamedFlow &);

    /// Frees the flows that have been idle for long.
    void forget(msfrs_time now);
    static constexpr size_t MostFlows = 65536;

private:
    std::shared_ptr<const Config> config_;
    std::unique_ptr<Engine> engine_;
    std::vector<msfrs_class *> classes_; ///< as in Config::classes
    std::array<size_t, std::size(PerHopClasses)> perHop_{};
    std::unordered_map<uint64_t, size_t> told_; ///< by ledger::ClassKey(), for a party
};

} // namespace msfrs::edge

#endif
