// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/rate_controller.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

namespace {
/// More than any gateway has connections: keeps W+ finite while nothing answers.
constexpr double MostOutstanding = 1 << 20;
} // namespace

RateController::RateController(const WindowParams &params, LedgerWindow &window, const msfrs_time now,
                               const double total):
    params_(params), window_(window), start_(now), startTotal_(total) {}

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
    start_ = fullSince_ = now;
    startTotal_ = fullSinceTotal_ = total;
}

bool RateController::update(const msfrs_time now, const double total, const double rate)
{
    const auto elapsed = now - start_;
    if (elapsed <= 0) {
        if (elapsed < 0)
            rebase(now, total); // a clock that went back by an hour must not stop W+ for an hour
        return false;
    }
    const auto share = [rate](const double bytes, const msfrs_time time) {
        return bytes * 8.0 / (rate * static_cast<double>(time) * 1e-9);               // (2)
    };
    if (full_)
        accountFull(now, total);
    utilisation_ = share(std::max(total - startTotal_, 0.0), elapsed);
    fullShare_ = std::min(1.0, static_cast<double>(intervalFull_) / static_cast<double>(elapsed));
    if (fullTime_ * 2 >= params_.interval) {
        const double u = share(fullBytes_, fullTime_);                                // U_m
        const double factor = u * params_.growth > params_.target                     // min{U+/U_m, K}, also for U_m = 0
                                  ? params_.target / u
                                  : params_.growth;
        window_.limit = std::clamp(window_.limit * factor, 1.0, MostOutstanding);     // (3)
        fullTime_ = 0;
        fullBytes_ = 0;
    }
    intervalFull_ = 0;
    start_ = now;
    startTotal_ = total;
    return true;
}

} // namespace msfrs
