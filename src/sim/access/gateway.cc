// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/gateway.h"

#include "sim/access/transaction.h"
#include "sim/access/tunnel.h"

#include <algorithm>

namespace msfrs::sim::access {

namespace {

constexpr msfrs_time KeepOpen = 60 * Second; ///< pconn_timeout

class LinkCounter final : public InterfaceCounter {
public:
    explicit LinkCounter(const Link &link): link_(link) {}
    std::optional<Received> read() override
    {
        const auto &counts = link_.counts();
        return Received{static_cast<uint64_t>(counts.carried), counts.carriedFrames};
    }

private:
    const Link &link_;
};

} // namespace

Gateway::Gateway(Clock &clock, Link &link, std::vector<ServerPath> paths, const std::optional<RequestConfig> &config,
                 const uint64_t seed, std::shared_ptr<Ledger> ledger):
    clock_(clock), link_(link), paths_(std::move(paths)), random_(seed), idle_(paths_.size()),
    timer_(clock, [this] { tick(); }),
    batches_(clock, [this] {
        for (const auto &ticket : tickets_)
            ticket->checkBatch();
        batches_.set(clock_.now() + ReadBatch::CheckEvery);
    })
{
    if (!config)
        return;
    RequestHost host;
    host.log = [this](const int level, const std::string &text) {
        if (level == 0)
            log_ += text + "\n";
    };
    host.random = [this] { return random_(); };
    host.openCounter = [this](const std::string &) { return std::make_unique<LinkCounter>(link_); };
    host.ledger = std::move(ledger);
    scheduler_ = std::make_unique<RequestScheduler>(*config, host, clock_.now());
    arm(clock_.now());
    batches_.set(clock_.now() + ReadBatch::CheckEvery);
}

Gateway::~Gateway() = default;

void Gateway::fetch(const Wish &wish, Watcher watcher)
{
    const auto ticket = std::make_shared<Transaction>(*this, wish, std::move(watcher));
    if (wish.thinks == Never) {
        clock_.after(GiveUp, [waits = std::weak_ptr<Ticket>(ticket)] {
            if (const auto found = waits.lock())
                found->giveUp();
        });
    }
    begin(ticket);
}

void Gateway::tunnel(const uint32_t cls, const std::string &user, const uint32_t server,
                     std::shared_ptr<Http2Session> session)
{
    begin(std::make_shared<Tunnel>(*this, cls, user, server, std::move(session)));
}

void Gateway::begin(std::shared_ptr<Ticket> ticket)
{
    auto &begun = *ticket;
    begun.place = tickets_.insert(tickets_.end(), std::move(ticket));
    begun.start();
}

void Gateway::end(Ticket &ticket)
{
    // Delays destruction: its code may be running, and events that it has scheduled come before this.
    clock_.after(0, [last = *ticket.place] {});
    tickets_.erase(ticket.place);
}

void Gateway::tick()
{
    arm(scheduler_->tick(clock_.now()));
}

void Gateway::arm(const msfrs_time when)
{
    timer_.set(std::max(when, clock_.now() + Ms)); // the resolution of Squid's events
}

Connection *Gateway::reuse(const uint32_t server)
{
    auto &idle = idle_[server];
    while (!idle.empty()) {
        const auto found = idle.back();
        idle.pop_back();
        if (clock_.now() - found->idleSince < KeepOpen)
            return found;
    }
    return nullptr;
}

Connection &Gateway::connect(const uint32_t server)
{
    const int64_t buffer = scheduler_ ? scheduler_->receiveBufferShare(scheduler_->baseRoundTrip(server)) : 0;
    connections_.push_back(std::make_unique<Connection>(clock_, link_, server, paths_[server], buffer));
    connections_.back()->receiver().takeLeast(kernelTakesLeast);
    return *connections_.back();
}

void Gateway::keep(Connection &connection)
{
    connection.onReadable = nullptr;
    connection.idleSince = clock_.now();
    idle_[connection.server()].push_back(&connection);
}

} // namespace msfrs::sim::access
