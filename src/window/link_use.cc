// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/link_use.h"

namespace msfrs {

double Utilisation(const double bytes, const msfrs_time time, const double rate)
{
    return std::max(bytes, 0.0) * 8.0 / (rate * static_cast<double>(time) * 1e-9);
}

LinkUse::LinkUse(const msfrs_time interval, const msfrs_time now, const double total):
    interval_(interval), start_{now, total}
{
}

void LinkUse::accountFull(const msfrs_time now, const double total)
{
    fullEver_ += std::max<msfrs_time>(now - fullSince_, 0);
    fullEverBytes_ += std::max(total - fullSinceTotal_, 0.0);
    fullSince_ = now;
    fullSinceTotal_ = total;
}

void LinkUse::setFull(const bool full, const msfrs_time now, const double total)
{
    if (full_)
        accountFull(now, total);
    full_ = full;
    fullSince_ = now;
    fullSinceTotal_ = total;
}

void LinkUse::rebase(const msfrs_time now, const double total)
{
    start_.at = fullSince_ = now;
    start_.total = fullSinceTotal_ = total;
}

bool LinkUse::update(const msfrs_time now, const double total, const double rate)
{
    const auto elapsed = now - start_.at;
    if (elapsed <= 0) {
        if (elapsed < 0)
            rebase(now, total); // a clock that went back by an hour must not stop the window for an hour
        return false;
    }
    if (full_)
        accountFull(now, total);
    elapsed_ = elapsed;
    const auto full = fullEver_ - start_.full;
    utilisation_ = Utilisation(total - start_.total, elapsed, rate);
    fullShare_ = std::min(1.0, static_cast<double>(full) / static_cast<double>(elapsed));
    usedWhileFull_ = full > 0 ? Utilisation(fullEverBytes_ - start_.fullBytes, full, rate) : utilisation_;
    start_ = mark(now, total);
    return true;
}

} // namespace msfrs
