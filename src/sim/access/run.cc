// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/run.h"

#include "ledger/shared.h"
#include "sim/access/http2_session.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace msfrs::sim::access {

namespace {

constexpr int64_t Small = 16384;

Latency LatencyOf(std::vector<double> times, const size_t unfinished)
{
    Latency found;
    found.count = times.size();
    found.unfinished = unfinished;
    if (times.empty())
        return found;
    for (const double t : times)
        found.mean += t / static_cast<double>(times.size());
    const auto quantile = [&times](const double q) {
        const auto rank = std::ceil(q * static_cast<double>(times.size()));
        const auto place = times.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
        std::nth_element(times.begin(), place, times.end());
        return *place;
    };
    found.p95 = quantile(0.95);
    found.p99 = quantile(0.99);
    return found;
}

void Evaluate(const RunParams &params, const std::vector<Record> &records, RunResult &result)
{
    const bool pages = params.workload.kind == WorkloadParams::Kind::Pages;
    const auto classes = params.workload.users.size();
    std::vector<std::vector<double>> times(classes + 2);
    std::vector<size_t> unfinished(classes + 2);
    std::vector<std::vector<double>> paints(classes);
    for (const auto &record : records) {
        if (record.wanted < params.warmup || record.wanted >= params.seconds || record.refused)
            continue;
        const auto until = [&](const double when) {
            return (when < 0 ? params.seconds + params.drain : when) - record.wanted;
        };
        const auto note = [&](const size_t group) {
            times[group].push_back(until(record.ended));
            unfinished[group] += record.ended < 0;
        };
        if (record.page)
            paints[record.cls].push_back(until(record.painted));
        if (record.page == pages) {
            note(record.cls);
            note(classes);
        }
        if (!record.page && record.size <= Small)
            note(classes + 1);
    }
    for (size_t cls = 0; cls < classes; ++cls) {
        result.classes.push_back(LatencyOf(times[cls], unfinished[cls]));
        result.paint.push_back(LatencyOf(paints[cls], 0).mean);
    }
    result.all = LatencyOf(times[classes], unfinished[classes]);
    result.smallMean = LatencyOf(times[classes + 1], 0).mean;
}

/// \param slices bytes of each class in each slice
double SliceError(const std::vector<std::vector<double>> &slices)
{
    double squares = 0, count = 0;
    for (size_t cls = 0; cls < slices.front().size(); ++cls) {
        double sum = 0;
        for (const auto &slice : slices)
            sum += slice[cls];
        const double mean = sum / static_cast<double>(slices.size());
        for (const auto &slice : slices) {
            squares += mean > 0 ? std::pow(slice[cls] / mean - 1, 2) : 0;
            count += mean > 0;
        }
    }
    return count > 0 ? std::sqrt(squares / count) : 0;
}

} // namespace

namespace {

/// The workers of a gateway.
class Workers {
public:
    Workers(Clock &clock, Link &link, const RunParams &params, const std::optional<RequestConfig> &config):
        split_(params.split), draws_(params.seed, "worker")
    {
        if (params.workers > 1 && config) {
            memory_ = std::make_unique<ledger::Segment>(); // all zero
            ledger::FormatSegment(memory_.get());
        }
        for (uint32_t n = 0; n < params.workers; ++n) {
            std::shared_ptr<Ledger> shared;
            const auto log = [this](int, const std::string &text) { log_ += text + "\n"; };
            if (memory_)
                shared = std::make_shared<SharedLedger>(*memory_, PartyParams{ledger::Kind::Worker, n, 0}, log,
                                                        clock.now());
            all_.push_back(std::make_unique<Gateway>(clock, link, params.paths, config, params.seed + n * 7919,
                                                     shared));
            all_.back()->kernelTakesLeast = params.kernelTakesLeast;
        }
    }

    /// The worker that gets a request or a tunnel.
    Gateway &one(const Wish &wish)
    {
        auto n = draws_.below(static_cast<uint32_t>(all_.size()));
        if (split_ == RunParams::Split::Class)
            n = wish.cls;
        else if (split_ == RunParams::Split::User)
            n = users_.emplace(wish.user, static_cast<uint32_t>(users_.size())).first->second;
        return *all_[n % all_.size()];
    }

    const std::vector<std::unique_ptr<Gateway>> &all() const { return all_; }
    std::string log() const
    {
        std::string all = log_;
        for (const auto &gateway : all_)
            all += gateway->log();
        return all;
    }

private:
    RunParams::Split split_;
    Draws draws_;
    std::map<std::string, uint32_t> users_; ///< in the order of arrival
    std::unique_ptr<ledger::Segment> memory_;
    std::string log_;
    std::vector<std::unique_ptr<Gateway>> all_;
};

} // namespace

RunParams::RunParams()
{
    for (int n = 0; n < 12; ++n)
        paths.push_back(12 * Ms + 284 * Ms * n / 11);
    workload.users = {4, 4, 4};
    config.classes = {{"gold", 4}, {"silver", 2}, {"bronze", 1}};
    config.defaultClass = 2;
}

void LetJump(std::vector<ServerPath> &paths, const size_t count, const msfrs_time jump, const msfrs_time every)
{
    for (size_t n = 0; n < paths.size(); ++n) {
        if ((n + 1) * count / paths.size() > n * count / paths.size()) {
            paths[n].jump = jump;
            paths[n].every = every;
        }
    }
}

namespace {

/// Each user opens its idle tunnels one after the other, to the servers in turn.
void OpenIdle(Clock &clock, Clients &clients, const RunParams &params)
{
    constexpr double Opening = 3; // s, as the trial
    const auto &users = params.workload.users;
    for (uint32_t cls = 0; cls < users.size(); ++cls) {
        for (uint32_t user = 0; user < users[cls]; ++user) {
            for (uint32_t n = 0; n < params.idle; ++n) {
                const auto server = n % static_cast<uint32_t>(params.paths.size());
                clock.at(static_cast<msfrs_time>(Opening * 1e9 * n / params.idle),
                         [&clients, wish = Wish{cls, UserName(cls, user), server, 0}] { clients.idle(wish); });
            }
        }
    }
}

} // namespace

RunResult Simulate(const RunParams &params)
{
    Clock clock;
    Link link(clock, params.rate, std::lround(params.buffer * params.rate / 8 * Seconds(params.bufferRtt)));
    std::optional<RequestConfig> config;
    if (params.scheduled) {
        config = params.config;
        config->rate = config->rate > 0 ? config->rate : params.rate;
        config->interface = "link";
    }
    Workers workers(clock, link, params, config);
    const auto scheduler = workers.all().front()->scheduler();
    const auto trace = params.trace.empty() ? RateTrace{{0, params.rate}}
                                            : MakeTrace(params.trace, params.rate, params.seconds, params.seed);
    const double offered = MeanRate(trace, params.warmup, params.seconds);
    for (size_t n = params.trace.empty() ? 1 : 0; n < trace.size(); ++n)
        clock.at(trace[n].at, [&link, rate = trace[n].rate] { link.setRate(rate); });
    const auto open = [&workers](const Wish &wish, std::shared_ptr<Http2Session> session) {
        workers.one(wish).tunnel(wish.cls, wish.user, wish.server, std::move(session));
    };
    Clients clients(clock, open, params.traffic == RunParams::Traffic::Tunnels);
    OpenIdle(clock, clients, params);
    const auto fetch = [&](const Wish &wish, Watcher watcher) {
        if (params.traffic == RunParams::Traffic::Http1 || wish.thinks == Never)
            workers.one(wish).fetch(wish, std::move(watcher));
        else
            clients.fetch(wish, std::move(watcher));
    };
    Workload workload(clock, fetch, params.workload, static_cast<uint32_t>(params.paths.size()), offered,
                      params.seconds, params.seed);
    Others others(clock, link, params.others, params.paths);
    const auto last = static_cast<uint32_t>(params.workload.users.size()) - 1;
    Beside beside(clock, fetch, clients, params.beside, last, static_cast<uint32_t>(params.paths.size()),
                  params.seconds);

    Work work(clock, link, trace);
    workload.asked = [&work](const int64_t bytes) { work.asked(bytes); };
    workload.ended = [&work](const int64_t rest) { work.ended(rest); };

    RunResult result;
    const auto &users = params.workload.users;
    uint32_t count = 0;
    std::vector<uint32_t> classOf;
    for (uint32_t cls = 0; cls < users.size(); ++cls) {
        classOf.insert(classOf.end(), users[cls], cls);
        count += users[cls];
    }
    std::vector<double> byUser(count);
    const auto whole = static_cast<size_t>((params.seconds - params.warmup) / params.slice);
    std::vector<std::vector<double>> slices(std::max<size_t>(whole, 1), std::vector<double>(users.size()));
    result.parts.assign(params.workload.parts, std::vector<double>(users.size()));
    workload.received = [&](const uint32_t cls, const uint32_t user, const int64_t bytes) {
        const double now = Seconds(clock.now());
        result.received += bytes;
        work.received(bytes);
        if (now >= params.seconds)
            return;
        if (now >= params.warmup) {
            byUser[user] += static_cast<double>(bytes);
            const auto slice = static_cast<size_t>((now - params.warmup) / params.slice);
            if (slice < slices.size())
                slices[slice][cls] += static_cast<double>(bytes);
        }
        const auto part = static_cast<size_t>(now / params.seconds * params.workload.parts);
        result.parts[part][cls] += static_cast<double>(bytes) / std::max(users[cls], 1u);
    };

    const auto at = [](const double seconds) { return static_cast<msfrs_time>(seconds * 1e9); };
    Link::Counts before;
    int64_t othersBefore = 0;
    const auto seen = [&workers, &clock] {
        double sum = 0;
        for (const auto &gateway : workers.all()) {
            for (const auto &cls : gateway->scheduler()->classes(clock.now()))
                sum += cls.unfinished;
        }
        return sum;
    };
    double seenBefore = 0;
    clock.at(at(params.warmup), [&] {
        link.measureQueue();
        work.measure();
        seenBefore = scheduler ? seen() : 0;
        before = link.counts();
        othersBefore = others.carried();
    });
    double outstanding = 0, found = 0, samples = 0;
    for (double t = 1; t <= params.seconds; ++t) {
        clock.at(at(t), [&, t] {
            if (!scheduler)
                return;
            const auto report = scheduler->window();
            const double rate = scheduler->config().rate;
            result.rates.push_back({rate, MeanRate(trace, t - 1, t)});
            result.window.push_back({t, report.outstanding, report.limit, report.utilisation, 0});
            if (t > params.warmup) {
                outstanding += report.outstanding;
                found += rate / offered;
                ++samples;
            }
        });
    }
    clock.run(at(params.seconds));

    const auto &counts = link.counts();
    result.utilisation = static_cast<double>(counts.carried - before.carried) * 8 / offered /
                         (params.seconds - params.warmup);
    result.others = static_cast<double>(others.carried() - othersBefore) * 8 / offered /
                    (params.seconds - params.warmup);
    result.sliceError = SliceError(slices);
    const auto frames = static_cast<double>(counts.offeredFrames - before.offeredFrames);
    result.dropped = frames > 0 ? static_cast<double>(counts.droppedFrames - before.droppedFrames) / frames : 0;
    result.unfinished = work.unfinished();
    result.unfinishedSeen = scheduler ? (seen() - seenBefore) / (params.seconds - params.warmup) : 0;
    result.whileAsked = work.utilisation();
    result.queueMean = link.meanQueue();
    result.queueP95 = link.queueQuantile(0.95);
    result.found = samples > 0 ? found / samples : 0;
    for (const auto &cls : scheduler ? scheduler->classes(clock.now()) : std::vector<ClassReport>())
        result.heldP95.push_back(cls.heldP95);
    result.inService = samples > 0 ? outstanding / samples : 0;
    clock.run(at(params.seconds + params.drain));

    for (uint32_t cls = 0; cls < users.size(); ++cls) {
        double sum = 0, worst = 0;
        for (uint32_t user = 0; user < count; ++user)
            sum += classOf[user] == cls ? byUser[user] : 0;
        const double mean = users[cls] ? sum / users[cls] : 0;
        for (uint32_t user = 0; user < count; ++user) {
            if (classOf[user] == cls && mean > 0)
                worst = std::max(worst, std::abs(byUser[user] / mean - 1));
        }
        result.perUser.push_back(mean);
        result.userError.push_back(worst);
    }
    for (const auto &gateway : workers.all()) {
        for (const auto &connection : gateway->connections()) {
            if (!connection->sender())
                continue;
            result.retransmitted += connection->sender()->retransmitted();
            result.timeouts += connection->sender()->timeouts();
        }
    }
    result.carried = link.counts().carried;
    result.log = workers.log();
    Evaluate(params, workload.records(), result);
    return result;
}

} // namespace msfrs::sim::access
