// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/rate_controller.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

namespace {
/// More than any gateway has connections: keeps W+ finite while nothing answers.
constexpr double MostOutstanding = 1 << 20;

constexpr msfrs_time FullMemory = 5'000'000'000; ///< ns of a full link before W+ is tried a little smaller
constexpr double FullStep = 0.98;                ///< by so much
constexpr msfrs_time FastMemory = 2'000'000'000; ///< the same while there are more than do by round trips
constexpr double FastStep = 0.7;                 ///< in one interval, while there are more than do by round trips
constexpr double GentleStep = 0.9;               ///< in one interval, below that, while a long queue stands
constexpr double LongQueue = 2;                  ///< times `queue`
constexpr msfrs_time IdleMemory = 10'000'000'000;
constexpr double NearlyIdle = 0.5;
constexpr double FloorStep = 1.25;               ///< at most, in one interval

/// By what U is full enough although packets make it uneven.
double Nearly(const double target) { return 1 - 3 * (1 - target); }

/// U_m, equation (2): share of C that so many bytes in so much time are.
double Utilisation(const double bytes, const msfrs_time time, const double rate)
{
    return std::max(bytes, 0.0) * 8.0 / (rate * static_cast<double>(time) * 1e-9);
}
} // namespace

const char *WindowChangeText(const WindowChange why)
{
    switch (why) {
    case WindowChange::None: return "none yet";
    case WindowChange::LinkNotFull: return "the link was not full while requests waited";
    case WindowChange::QueueAtProvider: return "a queue stood at the provider";
    case WindowChange::NobodyWaits: return "the link was full and nobody waited";
    case WindowChange::LinkFull: return "the link was full; fewer may do";
    case WindowChange::Idle: return "the link was nearly idle";
    case WindowChange::Floor: return "other traffic left less than the floor while requests waited";
    case WindowChange::Reset: return "it was reset by hand";
    case WindowChange::Followed: return "another worker measures the link, and changed it";
    }
    return "";
}

RateController::RateController(const WindowParams &params, LedgerWindow &window, const msfrs_time now,
                               const double total):
    params_(params), window_(window), start_(now), startTotal_(total), sinceRecomputed_(now),
    sinceRecomputedTotal_(total)
{
    window_.limit = std::max(params.initial, 1.0);
}

bool RateController::open() const { return window_.all() < std::lround(window_.limit); }

bool RateController::within() const { return window_.all() <= std::lround(window_.limit); }

bool RateController::openForFresh() const
{
    return window_.all() < std::lround(window_.limit * (1.0 + params_.reserve));
}

void RateController::returned()
{
    if (window_.outstanding > 0)
        --window_.outstanding;
}

void RateController::accountFull(const msfrs_time now, const double total)
{
    const auto time = std::max<msfrs_time>(now - fullSince_, 0);
    fullEver_ += time;
    fullTime_ += time;
    intervalFull_ += time;
    for (const auto bytes : {&fullEverBytes_, &intervalFullBytes_, &fullBytes_})
        *bytes += std::max(total - fullSinceTotal_, 0.0);
    fullSince_ = now;
    fullSinceTotal_ = total;
}

void RateController::setFull(const bool full, const msfrs_time now, const double total)
{
    if (full_)
        accountFull(now, total);
    full_ = full;
    fullSince_ = now;
    fullSinceTotal_ = total;
}

void RateController::rebase(const msfrs_time now, const double total)
{
    start_ = fullSince_ = sinceRecomputed_ = now;
    startTotal_ = fullSinceTotal_ = sinceRecomputedTotal_ = total;
}

void RateController::recompute(const msfrs_time now, const double total, const double rate, const PathState &path)
{
    // The link answers a round trip after the window has filled: what it carried over the whole time keeps that
    // ramp from looking like room to spare.
    const double whole = now > sinceRecomputed_
                             ? Utilisation(total - sinceRecomputedTotal_, now - sinceRecomputed_, rate)
                             : 0.0;
    const double u = std::max(Utilisation(fullBytes_, fullTime_, rate), whole);   // U_m
    const bool enough = params_.memory > 0 ? fullTime_ >= params_.memory : fullTime_ * 2 >= params_.interval;
    // No queue at the provider, and so no doubt that there is room.
    const bool room = path.queue && *path.queue * 2 < params_.queue;
    const bool early = fullTime_ * 2 >= params_.interval && u < (room ? 1 : params_.early) * params_.target;
    if (!enough && !early)
        return;
    const double factor = u * params_.growth > params_.target                     // min{U+/U_m, K}, also for U_m = 0
                              ? params_.target / u
                              : params_.growth;
    // The way down is lower()'s. Where a queue stands the link carries what it can, whatever share of C that is.
    if (params_.queue == 0 || (factor > 1 && !(path.queue && *path.queue > params_.queue)))
        change(window_.limit * factor, WindowChange::LinkNotFull);                // (3)
    fullTime_ = 0;
    fullBytes_ = 0;
    sinceRecomputed_ = now;
    sinceRecomputedTotal_ = total;
}

void RateController::change(const double limit, const WindowChange why)
{
    const double next = led_ ? window_.limit : std::clamp(limit, 1.0, MostOutstanding);
    if (next != window_.limit)
        lastChange_ = why;
    window_.limit = next;
}

void RateController::follow(const double limit, const msfrs_time now)
{
    led_ = false;
    const double before = window_.limit;
    change(limit, WindowChange::Followed);
    led_ = true;
    if (window_.limit != before)
        changedAt_ = now;
}

void RateController::scale(const double factor)
{
    if (!led_)
        window_.limit = std::clamp(window_.limit * factor, 1.0, MostOutstanding);
}

void RateController::tighten()
{
    const double before = window_.limit;
    change(std::min(before, window_.all() * GentleStep), WindowChange::QueueAtProvider);
}

/// \returns whether W+ must not come down
bool RateController::keepFloor(const msfrs_time elapsed, const PathState &path)
{
    const auto verdict = floor_.update({elapsed, utilisation_, path.own, fullShare_}, params_.floor);
    if (verdict == WindowFloor::Verdict::Yield)
        return false;
    fullFor_ = 0;
    // Not by round trips: where others' queue always stands, nobody has seen the least.
    const double most = std::max(params_.initial, path.weighted * WindowFloor::MostPlaces);
    if (verdict == WindowFloor::Verdict::Grow)
        change(std::clamp(most, window_.limit / FloorStep, window_.limit * FloorStep), WindowChange::Floor);
    return true;
}

void RateController::lower(const msfrs_time elapsed, const PathState &path)
{
    if (params_.queue == 0)
        return;
    const double mean = outstandingSamples_ ? outstandingSum_ / outstandingSamples_ : window_.all();
    const double inUse = std::max(1.0, std::min(window_.limit, mean));
    const double full = (1 + params_.target) / 2; // half of what U may miss
    const double nearly = Nearly(params_.target);

    if (utilisation_ < nearly)
        fullFor_ = 0;
    fullForBytes_ = (fullFor_ ? fullForBytes_ : 0) + utilisation_ * static_cast<double>(elapsed);
    fullFor_ += utilisation_ >= nearly ? elapsed : 0;
    idleFor_ = utilisation_ < NearlyIdle && fullShare_ == 0 ? idleFor_ + elapsed : 0;

    const bool standing = path.queue && *path.queue > params_.queue;
    const bool plenty = path.places > 0 && inUse > path.places;
    const bool carriesAll = fullForBytes_ >= full * static_cast<double>(fullFor_);
    if (plenty && (standing || (fullFor_ && fullShare_ < 0.5) || (fullFor_ >= FastMemory && carriesAll))) {
        const auto why = standing           ? WindowChange::QueueAtProvider
                         : fullShare_ < 0.5 ? WindowChange::NobodyWaits
                                            : WindowChange::LinkFull;
        change(std::max(path.places, inUse * FastStep), why);
        fullFor_ = 0;
    } else if (standing && static_cast<double>(*path.queue) > LongQueue * static_cast<double>(params_.queue)) {
        change(inUse * GentleStep, WindowChange::QueueAtProvider);
        fullFor_ = 0;
    } else if (fullFor_ >= FullMemory) {
        if (carriesAll)
            change(inUse * FullStep, WindowChange::LinkFull);
        fullFor_ = 0;
    } else if (idleFor_ >= IdleMemory) {
        change(window_.limit + (params_.initial - window_.limit) / 10, WindowChange::Idle);
    }
}

void RateController::reset(const msfrs_time now, const double total)
{
    setFull(full_, now, total);
    fullTime_ = fullFor_ = idleFor_ = 0;
    fullBytes_ = 0;
    sinceRecomputed_ = now;
    sinceRecomputedTotal_ = total;
    change(params_.initial, WindowChange::Reset);
    if (led_)
        return;
    lastChange_ = WindowChange::Reset; // also where W+ was W0+: somebody has asked for it
    changedAt_ = now;
}

bool RateController::update(const msfrs_time now, const double total, const double rate, const PathState &path)
{
    const auto elapsed = now - start_;
    if (elapsed <= 0) {
        if (elapsed < 0)
            rebase(now, total); // a clock that went back by an hour must not stop W+ for an hour
        return false;
    }
    if (full_)
        accountFull(now, total);
    utilisation_ = Utilisation(total - startTotal_, elapsed, rate);
    fullShare_ = std::min(1.0, static_cast<double>(intervalFull_) / static_cast<double>(elapsed));
    usedWhileFull_ = intervalFull_ > 0 ? Utilisation(intervalFullBytes_, intervalFull_, rate) : utilisation_;
    const double before = window_.limit;
    recompute(now, total, rate, path);
    budget_.update(elapsed, utilisation_, fullShare_, paced_ > 0 ? Nearly(params_.target) : params_.target);
    if (!keepFloor(elapsed, path))
        lower(elapsed, path);
    if (window_.limit != before)
        changedAt_ = now;
    outstandingSum_ = 0;
    outstandingSamples_ = 0;
    intervalFull_ = 0;
    intervalFullBytes_ = 0;
    start_ = now;
    startTotal_ = total;
    return true;
}

} // namespace msfrs
