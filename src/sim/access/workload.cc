// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/workload.h"

#include <algorithm>
#include <cmath>

namespace msfrs::sim::access {

namespace {

constexpr double SizeM = 9.357, SizeS = 1.318, CapSeconds = 8; // the paper, section 5.1; the trial's cap
constexpr double GridLow = 64, GridStep = 1.02;
constexpr msfrs_time PauseAfterRefusal = Second;

msfrs_time Time(const double seconds) { return static_cast<msfrs_time>(seconds * 1e9); }

/// FNV-1a
uint64_t Hash(const std::string_view text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (const unsigned char c : text)
        hash = (hash ^ c) * 0x100000001b3;
    return hash;
}

} // namespace

Draws::Draws(const uint64_t seed, const std::string_view name):
    bits_(Hash(std::to_string(seed) + "/" + std::string(name)))
{
}

double Draws::uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

msfrs_time Draws::firstByte(const msfrs_time median, const double sigma)
{
    return static_cast<msfrs_time>(static_cast<double>(median) * std::exp(sigma * normal()));
}

double Draws::exponential() { return -std::log1p(-uniform()); }

uint32_t Draws::below(const uint32_t n) { return static_cast<uint32_t>(uniform() * n); }

double Draws::normal()
{
    const double radius = std::sqrt(2 * exponential()), angle = 2 * M_PI * uniform(); // Box and Muller
    return radius * std::cos(angle);
}

int64_t Draws::size(const double cap)
{
    const double size = std::min(std::exp(SizeM + SizeS * normal()), cap);
    const double step = std::round(std::log(std::max(size, GridLow) / GridLow) / std::log(GridStep));
    return std::lround(GridLow * std::pow(GridStep, step));
}

int64_t WireBytes(const int64_t body)
{
    const auto stream = body + ResponseHeader;
    return stream + Headers * ((stream + Mss - 1) / Mss);
}

std::string UserName(const uint32_t cls, const uint32_t n)
{
    return "u" + std::to_string(cls + 1) + "-" + std::to_string(n + 1);
}

struct Workload::Page {
    size_t record;
    uint32_t server, asked, ended = 0, blocking;
    std::vector<int64_t> sizes;
};

Workload::Workload(Clock &clock, Fetch fetching, const WorkloadParams &params, const uint32_t servers,
                   const double rate, const double seconds, const uint64_t seed):
    clock_(clock), fetch_(std::move(fetching)), params_(params), servers_(servers), rate_(rate), seconds_(seconds)
{
    for (uint32_t cls = 0; cls < params.users.size(); ++cls) {
        for (uint32_t n = 0; n < params.users[cls]; ++n) {
            const auto number = static_cast<uint32_t>(users_.size());
            const auto name = UserName(cls, n);
            users_.push_back(std::make_unique<User>(User{cls, number, name, Draws(seed, name), Draws(seed, name + "/servers")}));
        }
    }
    using Kind = WorkloadParams::Kind;
    if (params.kind == Kind::Open || params.kind == Kind::Burst || params.kind == Kind::Recorded) {
        for (const auto &arrival : params.kind == Kind::Open    ? drawArrivals(seed)
                                   : params.kind == Kind::Burst ? drawBurst(seed)
                                                                : params.recorded) {
            clock_.at(Time(arrival.t), [this, arrival] {
                fetch(*users_.at(arrival.user), arrival.server, arrival.size, {});
            });
        }
        return;
    }
    for (const auto &each : users_) {
        auto &user = *each;
        if (params.kind == Kind::Pages) {
            clock_.after(Time(params_.think * user.draws.uniform()), [this, &user] { browse(user); });
            continue;
        }
        for (uint32_t n = 0; n < params_.inFlight; ++n)
            clock_.after(0, [this, &user] { keepAsking(user); });
    }
}

Workload::~Workload() = default;

int64_t Workload::size(Draws &draws) const
{
    const auto drawn = draws.size(CapSeconds * rate_ / 8);
    return params_.fixedSize ? params_.fixedSize : drawn;
}

void Workload::fetch(User &user, const uint32_t server, const int64_t size, std::function<void(bool)> then)
{
    const auto record = records_.size();
    records_.push_back({user.cls, user.number, size, Seconds(clock_.now())});
    if (asked)
        asked(size);
    Watcher watcher;
    const auto rest = std::make_shared<int64_t>(size);
    watcher.received = [this, &user, rest](const int64_t bytes) {
        *rest -= bytes;
        if (received)
            received(user.cls, user.number, bytes);
    };
    watcher.ended = [this, record, rest, then = std::move(then)](const bool refused) {
        if (ended)
            ended(*rest);
        records_[record].ended = Seconds(clock_.now());
        records_[record].refused = refused;
        if (then)
            then(refused);
    };
    const auto thinks = user.servers.firstByte(params_.firstByte, params_.firstByteSigma);
    if (user.servers.uniform() < params_.silent)
        fetch_({user.cls, user.name, server, size, {}, Never}, {[](int64_t) {}, [](bool) {}});
    fetch_({user.cls, user.name, server, size, {}, thinks}, std::move(watcher));
}

bool Workload::active(const User &user) const
{
    if (params_.active.empty())
        return true;
    const auto part = static_cast<uint32_t>(Seconds(clock_.now()) / seconds_ * params_.parts);
    return params_.active[user.cls] >> part & 1;
}

void Workload::keepAsking(User &user)
{
    if (Seconds(clock_.now()) >= seconds_)
        return;
    if (!active(user)) {
        const double part = seconds_ / params_.parts;
        const auto next = Time(part * (std::floor(Seconds(clock_.now()) / part) + 1)) + 1;
        clock_.at(next, [this, &user] { keepAsking(user); });
        return;
    }
    const auto server = params_.ownServers ? user.number % servers_ : user.draws.below(servers_);
    fetch(user, server, size(user.draws), [this, &user](const bool refused) {
        clock_.after(refused ? PauseAfterRefusal : 0, [this, &user] { keepAsking(user); });
    });
}

/// As in the trial: draws sizes up to the load of the run, and scales exponential gaps to fill it.
std::vector<Arrival> Workload::drawArrivals(const uint64_t seed)
{
    std::vector<Arrival> arrivals;
    Draws gaps(seed, "gaps"), who(seed, "user");
    double budget = params_.load * rate_ / 8 * seconds_, t = 0;
    while (budget > 0) {
        auto &user = *users_[who.below(static_cast<uint32_t>(users_.size()))];
        const auto server = user.draws.below(servers_);
        t += gaps.exponential();
        arrivals.push_back({t, user.number, server, size(user.draws)});
        budget -= static_cast<double>(WireBytes(arrivals.back().size));
    }
    if (-budget > static_cast<double>(WireBytes(arrivals.back().size)) / 2 && arrivals.size() > 1)
        arrivals.pop_back();
    const double scale = seconds_ / (arrivals.back().t + gaps.exponential());
    for (auto &arrival : arrivals)
        arrival.t *= scale;
    return arrivals;
}

std::vector<Arrival> Workload::drawBurst(const uint64_t seed)
{
    constexpr double Calm = 0.9;        // share of the time before the burst in which tunnels are opened
    constexpr int64_t SmallSize = 500;
    std::vector<Arrival> arrivals;
    Draws gaps(seed, "gaps");
    for (uint32_t n = 0; n < params_.burst; ++n) {
        const auto count = static_cast<uint32_t>(users_.size());
        auto &user = *users_[n % count];
        const auto server = n / count % servers_;
        if (params_.opened)
            arrivals.push_back({params_.burstAt * Calm * gaps.uniform(), user.number, server, SmallSize});
        arrivals.push_back({params_.burstAt, user.number, server, size(user.draws)});
    }
    return arrivals;
}

void Workload::browse(User &user)
{
    if (Seconds(clock_.now()) >= seconds_)
        return;
    auto page = std::make_shared<Page>(Page{records_.size(), user.draws.below(servers_), 1, 0, 0, {}});
    records_.push_back({user.cls, user.number, 0, Seconds(clock_.now())});
    records_.back().page = true;
    for (uint32_t n = 0; n < params_.objects; ++n) {
        page->sizes.push_back(size(user.draws));
        records_[page->record].size += page->sizes.back();
    }
    page->blocking = std::min(params_.blocking, params_.objects);
    fetch(user, page->server, page->sizes[0], [this, &user, page](bool) {
        page->ended = 1;
        paint(*page, 0);
        for (uint32_t n = 0; n < params_.connections; ++n)
            object(user, page);
    });
}

/// The next object of a page, or its end.
void Workload::object(User &user, const std::shared_ptr<Page> &page)
{
    if (page->asked < page->sizes.size()) {
        const auto number = page->asked++;
        const auto server = (page->server + number % params_.hosts) % servers_;
        fetch(user, server, page->sizes[number], [this, &user, page, number](bool) {
            ++page->ended;
            paint(*page, number);
            object(user, page);
        });
    } else if (page->ended == page->sizes.size()) {
        ++page->ended; // once
        records_[page->record].ended = Seconds(clock_.now());
        clock_.after(Time(params_.think * user.draws.exponential()), [this, &user] { browse(user); });
    }
}

/// An object has arrived.
void Workload::paint(Page &page, const uint32_t object)
{
    if (object < params_.blocking && --page.blocking == 0)
        records_[page.record].painted = Seconds(clock_.now());
}

} // namespace msfrs::sim::access
