// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/paper_window.h"

#include <algorithm>

namespace msfrs {

/// More than the connections of any gateway: keeps W+ finite while no server answers.
constexpr double MostOutstanding = 1 << 20;

void PaperWindow::update(const WindowParams &params, const LinkUse &use, const msfrs_time now, const double total,
                         const double rate)
{
    const auto full = use.fullTime() - since_.full;
    if (full * 2 < params.interval)
        return;
    // The link responds a round trip after the window has filled. U over the whole time keeps that ramp from looking
    // like spare capacity.
    const double whole = now > since_.at ? Utilisation(total - since_.total, now - since_.at, rate) : 0;
    const double u = std::max(Utilisation(use.carriedWhileFull() - since_.fullBytes, full, rate), whole); // U_m
    const double factor = u * params.growth > params.target // min{U+/U_m, K}, also for U_m = 0
                              ? params.target / u
                              : params.growth;
    change(limit_ * factor); // (3)
    since_ = use.mark(now, total);
}

void PaperWindow::rebase(const msfrs_time now, const double total)
{
    since_.at = now;
    since_.total = total;
}

void PaperWindow::reset(const LinkUse &use, const msfrs_time now, const double total)
{
    since_ = use.mark(now, total);
    change(1);
}

void PaperWindow::follow(const double limit)
{
    led_ = false;
    change(limit);
    led_ = true;
}

void PaperWindow::change(const double limit)
{
    if (!led_)
        limit_ = std::clamp(limit, 1.0, MostOutstanding);
}

} // namespace msfrs
