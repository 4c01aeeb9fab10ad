// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Holds the SYN of a connection that is about to be intercepted until its server has answered a probe:
///
///     SYN --> server known ------------------------------------------> to Squid
///         \-> held --> probe --+--> answered: the server is known ---> to Squid
///                              +--> refused, or unreachable ---------> marked: forwarded to the server
///                              +--> silent for Patience -------------> dropped
///
/// So a client sees of a server what it would see without Squid, whose kernel answers every SYN at once: a client with
/// several addresses of a server (RFC 8305) tries the next one. The class has no sockets and reads no clock.
#pragma once

#include "edge/daemon/packet_path.h"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace msfrs::syn {

/// A server's address and port.
struct Server {
    Family family = Family::V4;
    Address address;
    uint16_t port = 0;

    friend bool operator<(const Server &a, const Server &b)
    {
        return std::tie(a.family, a.address, a.port) < std::tie(b.family, b.address, b.port);
    }
};

/// Of a probe. Refused: a RST, or an ICMP error, or no route. Failed: the probe could not be sent.
enum class Outcome { Answered, Refused, Failed };

/// Sends probes.
class Prober {
public:
    virtual ~Prober() = default;
    /// Sends a SYN to a server. \param client whose SYN waits
    /// \returns nothing if Gate::finish() will be called with the outcome
    virtual std::optional<Outcome> start(const Server &, const Address &client) = 0;
    /// Ends a probe without an outcome.
    virtual void stop(const Server &) = 0;
};

/// Bits of the firewall mark.
struct MarkBits {
    uint32_t value = 0x200, mask = 0x200;
    uint32_t in(const uint32_t mark) const { return (mark & ~mask) | value; }
};

class Gate {
public:
    /// ns that a probe takes at most. The kernel sends its SYN after 0, 1 and 3 s, as clients do, so a lost packet costs
    /// what it costs without Squid; after that the client's next SYN starts another probe.
    static constexpr msfrs_time Patience = 6'000'000'000;
    /// ns for which a server that has answered is known: so long does it take until clients see that it has become
    /// silent, and so often does a SYN wait for one round trip more.
    static constexpr msfrs_time Memory = 10'000'000'000;
    /// SYNs held at once, in all and of one user (an IPv4 address, or an IPv6 network of 64 bits), and known servers.
    /// Any further SYN passes to Squid at once, and the oldest known server is forgotten.
    static constexpr size_t MostHeld = 8192, MostHeldOfUser = 2048, MostKnown = 65536;

    Gate(Prober &prober, edge::Verdicts &verdicts, const MarkBits bits): prober_(prober), verdicts_(verdicts), bits_(bits)
    {}
    Gate(const Gate &) = delete;

    /// Passes or holds a packet; one that is not a complete TCP header passes.
    void arrive(const edge::Arrival &, msfrs_time now);
    /// The outcome of a probe.
    void finish(const Server &, Outcome, msfrs_time now);
    /// Drops SYNs to servers that were silent for Patience.
    void expire(msfrs_time now);
    /// When to call expire() again.
    std::optional<msfrs_time> next() const;
    /// Ends all probes; the SYNs that wait pass to Squid.
    void release();

    size_t held() const { return held_; }
    size_t probes() const { return probes_.size(); }
    size_t known() const { return known_.size(); }

private:
    struct Client {
        Address address;
        uint32_t port;
        friend bool operator<(const Client &a, const Client &b)
        {
            return std::tie(a.address, a.port) < std::tie(b.address, b.port);
        }
    };
    struct Syn {
        uint32_t id, mark;
        Address user;
    };
    struct Probe {
        msfrs_time until;
        std::map<Client, Syn> waiting;
    };
    using Probes = std::map<Server, Probe>;

    bool isKnown(const Server &, msfrs_time now);
    void remember(const Server &, msfrs_time now);
    void give(const Syn &, Outcome);
    template <class Give>
    void end(Probes::iterator, const Give &);

    Prober &prober_;
    edge::Verdicts &verdicts_;
    MarkBits bits_;
    Probes probes_;
    std::set<std::pair<msfrs_time, Server>> deadlines_; ///< of all probes
    std::map<Address, size_t> heldOf_;                  ///< by user
    size_t held_ = 0;
    std::set<Server> known_;
    std::deque<std::pair<msfrs_time, Server>> forget_; ///< of all known servers, in order
};

} // namespace msfrs::syn
