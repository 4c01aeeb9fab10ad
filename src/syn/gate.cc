// SPDX-License-Identifier: GPL-2.0-or-later
#include "syn/gate.h"

#include "edge/packet.h"

#include <netinet/in.h>

namespace msfrs::syn {

void Gate::arrive(const edge::Arrival &packet, const msfrs_time now)
{
    const auto key = edge::ReadKey(packet.data, packet.captured);
    if (!key || key->protocol != IPPROTO_TCP || key->destinationPort == edge::NoPort)
        return verdicts_.give(packet.id, true, {});
    const Server server{key->family, key->destination, static_cast<uint16_t>(key->destinationPort)};
    if (isKnown(server, now))
        return verdicts_.give(packet.id, true, {});
    const Client client{key->source, key->sourcePort};
    const Syn syn{packet.id, packet.mark, key->family == Family::V6 ? Address{key->source.high, 0} : key->source};
    auto probe = probes_.find(server);
    if (probe != probes_.end() && probe->second.waiting.count(client))
        return verdicts_.give(packet.id, false, {}); // a retransmission: the first one still waits
    const auto user = heldOf_.find(syn.user);
    if (held_ == MostHeld || (user != heldOf_.end() && user->second == MostHeldOfUser))
        return verdicts_.give(packet.id, true, {});
    if (probe == probes_.end()) {
        if (const auto outcome = prober_.start(server, client.address)) {
            if (*outcome == Outcome::Answered)
                remember(server, now);
            return give(syn, *outcome);
        }
        probe = probes_.emplace(server, Probe{now + Patience, {}}).first;
        deadlines_.emplace(now + Patience, server);
    }
    probe->second.waiting.emplace(client, syn);
    ++heldOf_[syn.user];
    ++held_;
}

void Gate::finish(const Server &server, const Outcome outcome, const msfrs_time now)
{
    const auto probe = probes_.find(server);
    if (probe == probes_.end())
        return;
    if (outcome == Outcome::Answered)
        remember(server, now);
    end(probe, [&](const Syn &syn) { give(syn, outcome); });
}

void Gate::expire(const msfrs_time now)
{
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        const auto server = deadlines_.begin()->second;
        prober_.stop(server);
        end(probes_.find(server), [this](const Syn &syn) { verdicts_.give(syn.id, false, {}); });
    }
}

std::optional<msfrs_time> Gate::next() const
{
    if (deadlines_.empty())
        return {};
    return deadlines_.begin()->first;
}

void Gate::release()
{
    while (!probes_.empty()) {
        prober_.stop(probes_.begin()->first);
        end(probes_.begin(), [this](const Syn &syn) { give(syn, Outcome::Failed); });
    }
}

bool Gate::isKnown(const Server &server, const msfrs_time now)
{
    for (; !forget_.empty() && forget_.front().first <= now; forget_.pop_front())
        known_.erase(forget_.front().second);
    return known_.count(server) > 0;
}

void Gate::remember(const Server &server, const msfrs_time now)
{
    if (known_.size() == MostKnown) {
        known_.erase(forget_.front().second);
        forget_.pop_front();
    }
    // No probe starts for a known server, so it is not known yet.
    known_.insert(server);
    forget_.emplace_back(now + Memory, server);
}

void Gate::give(const Syn &syn, const Outcome outcome)
{
    verdicts_.give(syn.id, true, outcome == Outcome::Refused ? std::optional(bits_.in(syn.mark)) : std::nullopt);
}

template <class Give>
void Gate::end(const Probes::iterator probe, const Give &give)
{
    for (const auto &waiting : probe->second.waiting) {
        const auto &syn = waiting.second;
        give(syn);
        --held_;
        if (const auto user = heldOf_.find(syn.user); --user->second == 0)
            heldOf_.erase(user);
    }
    deadlines_.erase({probe->second.until, probe->first});
    probes_.erase(probe);
}

} // namespace msfrs::syn
