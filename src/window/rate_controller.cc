// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/rate_controller.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

namespace {
/// More than any gateway has connections: keeps W+ finite while nothing answers.
constexpr double MostOutstanding = 1 << 20;
} // namespace

RateController::RateController(const WindowParams &params, LedgerWindow &window, const msfrs_time now):
    params_(params), window_(window), start_(now) {}

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

bool RateController::update(const msfrs_time now, const double bytes, const double rate)
{
    const auto elapsed = now - start_;
    if (elapsed <= 0)
        return false;
    const double seconds = static_cast<double>(elapsed) * 1e-9;
    utilisation_ = bytes * 8.0 / (rate * seconds);                               // (2)
    lastFull_ = full_;
    if (full_) {
        const double factor = utilisation_ * params_.growth > params_.target     // min{U+/U_m, K}, safe for U_m = 0
                                  ? params_.target / utilisation_
                                  : params_.growth;
        window_.limit = std::clamp(window_.limit * factor, 1.0, MostOutstanding); // (3)
    }
    full_ = false;
    start_ = now;
    return true;
}

} // namespace msfrs
