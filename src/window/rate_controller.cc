// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/rate_controller.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

namespace {
/// More than any gateway has connections: keeps W+ finite while nothing answers.
constexpr double MostOutstanding = 1 << 20;

/// U_m, equation (2): share of C that so many bytes in so much time are.
double Utilisation(const double bytes, const msfrs_time time, const double rate)
{
    return std::max(bytes, 0.0) * 8.0 / (rate * static_cast<double>(time) * 1e-9);
}
} // namespace

RateController::RateController(const WindowParams &params, LedgerWindow &window, const msfrs_time now,
                               const double total):
    params_(params), window_(window), start_(now), startTotal_(total), sinceRecomputed_(now),
    sinceRecomputedTotal_(total)
{
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

void RateController::recompute(const msfrs_time now, const double total, const double rate)
{
    // The link answers a round trip after the window has filled: what it carried over the whole time keeps that
    // ramp from looking like room to spare.
    const double whole = now > sinceRecomputed_
                             ? Utilisation(total - sinceRecomputedTotal_, now - sinceRecomputed_, rate)
                             : 0.0;
    const double u = std::max(Utilisation(fullBytes_, fullTime_, rate), whole);   // U_m
    if (fullTime_ * 2 < params_.interval)
        return;
    const double factor = u * params_.growth > params_.target                     // min{U+/U_m, K}, also for U_m = 0
                              ? params_.target / u
                              : params_.growth;
    change(window_.limit * factor); // (3)
    beginMeasurement(now, total);
}

void RateController::beginMeasurement(const msfrs_time now, const double total)
{
    fullTime_ = 0;
    fullBytes_ = 0;
    sinceRecomputed_ = now;
    sinceRecomputedTotal_ = total;
}

void RateController::change(const double limit)
{
    if (!led_)
        window_.limit = std::clamp(limit, 1.0, MostOutstanding);
}

void RateController::follow(const double limit)
{
    led_ = false;
    change(limit);
    led_ = true;
}

void RateController::reset(const msfrs_time now, const double total)
{
    setFull(full_, now, total);
    beginMeasurement(now, total);
    change(1);
}

bool RateController::update(const msfrs_time now, const double total, const double rate, const double own)
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
    recompute(now, total, rate);
    floor_.update({elapsed, utilisation_, own, fullShare_}, params_.floor);
    intervalFull_ = 0;
    intervalFullBytes_ = 0;
    start_ = now;
    startTotal_ = total;
    return true;
}

} // namespace msfrs
