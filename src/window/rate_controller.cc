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
    window_.limit = std::max(params.initial, 1.0);
}

bool RateController::open() const { return window_.outstanding < std::lround(window_.limit); }

bool RateController::openForFresh() const
{
    return window_.outstanding < std::lround(window_.limit * (1.0 + params_.reserve));
}

void RateController::returned()
{
    if (window_.outstanding > 0)
        --window_.outstanding;
}

void RateController::accountFull(const msfrs_time now, const double total)
{
    const auto time = std::max<msfrs_time>(now - fullSince_, 0);
    fullTime_ += time;
    intervalFull_ += time;
    fullBytes_ += std::max(total - fullSinceTotal_, 0.0);
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
    const bool enough = params_.memory > 0 ? fullTime_ >= params_.memory : fullTime_ * 2 >= params_.interval;
    const bool early = fullTime_ * 2 >= params_.interval && u < params_.early * params_.target;
    if (!enough && !early)
        return;
    const double factor = u * params_.growth > params_.target                     // min{U+/U_m, K}, also for U_m = 0
                              ? params_.target / u
                              : params_.growth;
    window_.limit = std::clamp(window_.limit * factor, 1.0, MostOutstanding);     // (3)
    fullTime_ = 0;
    fullBytes_ = 0;
    sinceRecomputed_ = now;
    sinceRecomputedTotal_ = total;
}

bool RateController::update(const msfrs_time now, const double total, const double rate)
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
    recompute(now, total, rate);
    intervalFull_ = 0;
    start_ = now;
    startTotal_ = total;
    return true;
}

} // namespace msfrs
