// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The product's law (`msfrs_window law=bytes`): a request is released while the bytes that may be in flight fill less
/// than the link and a queue of q* (FlightCredit). q* is controlled by utilisation (QueueTarget), each user's part by
/// receive windows (request_windows.cc), and a response queues for its next turn before the present one has ended.
#include "engine/request_state.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace msfrs {

constexpr double Thousandths = 1000; ///< of C: unit in which bookings are reported to other parties

class RequestScheduler::Impl::BytesLaw final : public Law {
public:
    using Law::Law;

    bool open() const override { return takeLess(1); }
    bool within() const override { return takeLess(1) || self.taken() == 1; }
    bool openForFresh() const override { return takeLess(1 + self.windowParams.reserve); }

    /// As many as would take all of C if they were like those in service, or like quanta if there are none.
    double limit() const override
    {
        const double all = self.taken(), capacity = self.config.rate / 8 * self.roundTrip(0);
        const double each = all > 0 ? all / self.outstanding() : static_cast<double>(self.config.quantum) / capacity;
        return std::max(1 / each, 1.0);
    }

    /// As if theirs were like those here.
    double elsewhere() const override
    {
        const double here = self.takenHere();
        return here > 0 ? static_cast<double>(self.inService()) * self.takenElsewhere() / here : 0;
    }

    uint32_t part() const override { return static_cast<uint32_t>(std::lround(Thousandths * self.takenHere())); }
    double whole() const override { return Thousandths; }
    void follow(const SharedWindow *) override { self.paper.lead(); } // there is no count to follow

    std::string text() const override
    {
        char text[80];
        std::snprintf(text, sizeof(text), "%.0f KB may be in flight, %.0f %% of what fits",
                      static_cast<double>(self.credit.bytes()) / 1024, 100 * self.taken());
        return text;
    }

    void arrived(const Request &r, const int64_t bytes) override
    {
        auto &flow = self.flowOf(r);
        const auto active = self.receivers(flow);
        self.lag.setMost(ServiceLag::Most * self.config.rate / 8);
        self.lag.serve(flow.lag, static_cast<double>(bytes), active.responses == 0, flow.cls->weight, active.weights);
    }

    bool opensByBytes() const override { return openForFresh(); }
    double lag(NamedFlow &flow) const override { return self.lag.bytes(flow.lag, flow.cls->weight); }

    /// When the rest of its turn is in flight. So no idle RTT separates two turns, and a user with a single response
    /// takes part when the next turn is granted.
    bool queuesEarly(const Request &r, const bool complete) const override
    {
        return !complete && r.quantumLeft <= r.window &&
               (r.remaining == MSFRS_UNKNOWN || r.remaining > r.quantumLeft);
    }

    void adapt(const QueueSeen &seen, const msfrs_time now) override
    {
        updateQueueTarget(seen);
        self.doubtRate(seen, now);
    }

    double queueTarget() const override { return Seconds(self.queueTarget.get()); }

private:
    /// Whether responses take less than this share of what other traffic leaves, or than the floor makes of it; beyond
    /// that share some requests must still wait.
    bool takeLess(const double share) const
    {
        const double growth = self.floor.factor(), all = self.taken() / self.leftByOthers();
        return all < share ||
               (all < share * growth && self.outstanding() < WindowFloor::MostPlaces * weightedPlaces());
    }

    /// How many could be in service at their weights until some class has none waiting; 0: there are no requests.
    double weightedPlaces() const
    {
        double least = 0, weights = 0;
        for (const auto &slot : self.slots) {
            const auto &cls = *slot.cls;
            if (cls.users == 0)
                continue;
            const double weight = cls.weight * cls.users, has = (cls.backlog + cls.in_service) / weight;
            least = weights > 0 ? std::min(least, has) : has;
            weights += weight;
        }
        const double here = static_cast<double>(self.inService() + self.engine->totals().queued.items);
        const double others = elsewhere() + static_cast<double>(self.others->waiting);
        return here > 0 ? least * weights * (1 + others / here) : others; // as if theirs were like ours
    }

    void updateQueueTarget(const QueueSeen &seen)
    {
        if (const auto led = self.ledger->follow(); led && led->queue > 0) {
            self.queueTarget = QueueTarget(led->queue);
            return;
        }
        const auto &params = self.windowParams;
        const auto queue = seen.enough() ? std::optional(seen.queue) : std::nullopt;
        self.queueTarget.update(params.interval, self.use.fullShare(), 1 - self.use.usedWhileFull(),
                                (1 - params.target) / 2,
                                {params.queue, queue, self.capacity.has_value(),
                                 self.capacity && self.capacity->varies()});
    }
};

/// Rate at which responses of other parties may arrive, as a share of C.
double RequestScheduler::Impl::takenElsewhere() const
{
    const auto led = ledger->follow();
    return others->places / (led ? led->limit : Thousandths);
}

std::unique_ptr<RequestScheduler::Impl::Law> RequestScheduler::Impl::makeBytesLaw()
{
    return std::make_unique<BytesLaw>(*this);
}

} // namespace msfrs
