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
/// It decides on releases with `law=paper` and without quanta. With `law=bytes` it only counts W.
#ifndef MSFRS_WINDOW_PAPER_WINDOW_H
#define MSFRS_WINDOW_PAPER_WINDOW_H

#include "window/link_use.h"
#include "window/window_params.h"

namespace msfrs {

class PaperWindow {
public:
    /// \param total bytes the link has carried since some fixed time
    PaperWindow(const msfrs_time now, const double total): since_{now, total} {}

    bool open() const;                          ///< W < W+: any item may be released
    bool within() const;                        ///< W <= W+: no item has to give its slot back
    /// W < (1 + reserve) W+: an item without service may be released.
    bool openForFresh(double reserve) const;

    void released() { ++outstanding_; }         ///< W + 1
    void returned();                            ///< W - 1; 0 stays 0
    /// Sets how many items of other parties on the link are outstanding.
    void elsewhere(const uint32_t outstanding) { elsewhere_ = outstanding; }
    uint32_t outstanding() const { return outstanding_; } ///< items released here and neither paused nor done
    uint32_t all() const { return outstanding_ + elsewhere_; } ///< W
    double limit() const { return limit_; }     ///< W+, real, >= 1

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

    uint32_t outstanding_ = 0, elsewhere_ = 0;
    double limit_ = 1;
    bool led_ = false;                          ///< see follow()
    LinkUse::Mark since_;                       ///< when W+ was computed last
};

} // namespace msfrs

#endif
