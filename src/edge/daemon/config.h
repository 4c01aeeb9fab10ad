// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The configuration of msfrs-edge; docs/user/edge.md describes the file.
///
/// A keyword is one row of the table in keywords.cc. Checks that need the whole file are in Finish() there.
#pragma once

#include "edge/daemon/flow_key.h"
#include "config/keywords.h"
#include "edge/rules.h"
#include "engine/engine.h"
#include "ledger/directory.h"
#include "window/capacity.h"

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::edge {

constexpr const char *Program = "msfrs-edge";

struct LinkConfig {
    int64_t rate = 0;     ///< bit/s; 0: no limit. With rate=auto: bounds.min
    CapacityParams bounds; ///< of the estimate; max is 0: the rate is configured
    int64_t overhead = 0; ///< bytes that the link adds to each packet
    int64_t mtu = 1500;   ///< bytes of a packet on the link, into which larger ones will be split
    int64_t burst = 0;    ///< bytes that may leave at once after idle time
    std::string where;    ///< the line it is from

    bool found() const { return bounds.max > 0; }
};

struct QueueConfig {
    enum class Gso { Auto, On, Off };

    uint32_t number = 0;  ///< of the first NFQUEUE
    uint32_t threads = 1; ///< queues number, number + 1, ...: one thread each
    Gso gso = Gso::Auto;
    bool failOpen = true; ///< packets that the kernel cannot queue pass unscheduled instead of being dropped
    bool conntrack = true;
    bool realtime = true; ///< threads have real-time priority
    uint32_t buffer = 8u << 20; ///< bytes of headers between kernel and daemon
    std::string where;    ///< the line it is from

    friend bool operator==(const QueueConfig &a, const QueueConfig &b)
    {
        return a.number == b.number && a.threads == b.threads && a.gso == b.gso && a.failOpen == b.failOpen &&
            a.conntrack == b.conntrack && a.realtime == b.realtime && a.buffer == b.buffer;
    }
};

struct ClassConfig {
    std::string name, parent; ///< parent: of an interior class, or empty
    double weight = 1;
    bool aggregate = false;   ///< its flows count as one to plugins that separate flows
    bool interior = false;    ///< other classes name it as their parent
    std::string where;
};

/// A `classify` line, with its conditions beside addresses, protocol and ports.
struct ClassifyLine {
    enum class Kind { Any, Ack, Request };

    size_t cls = 0; ///< index into Config::classes
    Match match;
    Range<uint32_t> length{0, UINT32_MAX}; ///< bytes from the IP header
    std::optional<uint8_t> dscp;
    Kind kind = Kind::Any;
    std::string where;

    /// Whether it matches every packet that the other one matches.
    bool covers(const ClassifyLine &c) const
    {
        return match.covers(c.match) && length.covers(c.length) && (!dscp || dscp == c.dscp) &&
            (kind == Kind::Any || kind == c.kind);
    }
};

/// Reports to Squid of traffic that does not pass it: see Excess.
struct ExcessConfig {
    std::string socket; ///< path of Squid's; empty: no reports
    msfrs_time interval = 100'000'000; ///< ns between two reports
    std::string where;  ///< the line it is from
};

/// A `scheduler` or `aqm` line.
struct PluginConfig : Engine::Part {
    std::string text;  ///< name and parameters
    std::string where; ///< the line it is from; empty: not configured
};

constexpr size_t NoClass = SIZE_MAX;

struct Config {
    LinkConfig link;
    QueueConfig queue;
    PluginConfig scheduler, aqm; ///< aqm: its plugin may be null
    uint32_t limit = 1000;       ///< most packets that wait
    FlowRule flow;
    std::vector<ClassConfig> classes; ///< parents before children
    size_t defaultClass = NoClass; ///< set once the file was read
    std::vector<ClassifyLine> classify;
    std::string rulesFile;
    std::shared_ptr<const std::vector<Rule>> rules; ///< null: no conditioner
    std::optional<unsigned> markShift;              ///< position of code points in the firewall mark; nothing: none
    Written control;                                ///< path of the control socket
    ExcessConfig excess;
    Written segment;                                ///< name of the ledger's memory; empty: no party of it
    Written user{"nobody", {}};

    /// Index into `classes`; their number if none has that name.
    size_t classNamed(std::string_view name) const;
    /// Whether TCP segments stay together (GSO).
    bool gso() const;
    /// The same with the classes of Squid.
    Config withClasses(const ledger::ClassList &) const;
};

/// Queues, packets, classes and lines; a file with more is refused. A packet is compared with each line of `classify`
/// in turn; a rules file has a classifier for more of them.
constexpr uint32_t MostThreads = 64, MostLimit = 60000, MostClasses = 1024, MostClassify = 256;

/// \param file for messages
/// \param pluginDir directory of the plugins; empty: the installed one
/// \throws RuleError with file, line, the value and what is allowed
Config ReadConfig(std::istream &, const std::string &file, const std::string &pluginDir = {});
/// The same from a file's path. A rules file given without a directory is beside it.
Config ReadConfig(const std::string &path, const std::string &pluginDir = {});

/// Reads the file as a reload will; call it as the user. \returns an empty string, or another reason why reloads will
/// fail, such as a plugin that the user may not read
/// \throws RuleError the user may not read the file, or its rules
std::string CheckReload(const Config &, const std::string &file, const std::string &pluginDir);

/// Why a running daemon cannot switch from `now` to `next`; empty if it can.
std::string NeedsRestart(const Config &now, const Config &next);

} // namespace msfrs::edge
