// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The paper's window (WRC): the number of responses that may be outstanding, W+, so that the link is just full. Tsao,
/// Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access gateway for downlink
/// differential QoS", section 3.2, equations (2) and (3).
///
/// The paper recomputes W+ only when W = W+. So U_m is measured over the time in which a request waited for a slot.
/// This time adds up, and once it reaches half an interval W+ is recomputed at the end of the interval. Under backlog
/// this is exactly the paper's rule. With bursts it keeps the idle gaps between them out of U_m, which would
/// otherwise open the window until it holds nothing back.
///
/// It decides on releases with `law=paper`, and without quanta.
#pragma once

#include "window/link_use.h"
#include "window/window_params.h"

#include <cmath>

namespace msfrs {

class PaperWindow {
public:
    /// \param total bytes the link has carried since some fixed time
    PaperWindow(const msfrs_time now, const double total): since_{now, total} {}

    double limit() const { return limit_; }     ///< W+, real, >= 1
    /// W < (1 + reserve) W+: an item may be released; with a reserve, one without service.
    /// \param w W, items released and neither paused nor done \param reserve share of W+, >= 0
    bool open(const double w, const double reserve = 0) const { return w < std::round(limit_ * (1 + reserve)); }
    bool within(const double w) const { return w <= std::round(limit_); } ///< no item has to give its slot back

    /// Updates W+ at the end of an interval.
    /// \param total bytes the link has carried since some fixed time
    /// \param rate C in bit/s, > 0
    void update(const WindowParams &, const LinkUse &, msfrs_time now, double total, double rate);
    /// Totals count from another origin from now on.
    void rebase(msfrs_time now, double total);
    /// Sets W+ to 1 and discards measurements.
    void reset(const LinkUse &, msfrs_time now, double total);
    /// Another party computes W+ from now on: update() and reset() do not change it.
    void follow(double limit);
    void lead() { led_ = false; }               ///< computes W+ here again, from its present value

private:
    void change(double limit);

    double limit_ = 1;
    bool led_ = false;                          ///< see follow()
    LinkUse::Mark since_;                       ///< when W+ was computed last
};

} // namespace msfrs
