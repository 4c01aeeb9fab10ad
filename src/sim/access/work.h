// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Unfinished work, the bytes requested and not received yet, and the utilisation meanwhile: as the field trial defines
/// them (fieldtrial/analysis/work.py), so that they are comparable between gateways.
#pragma once

#include "sim/link/link.h"
#include "sim/access/trace.h"

namespace msfrs::sim::access {

class Work {
public:
    /// All arguments must outlive it.
    Work(const Clock &clock, const Link &link, const RateTrace &offered):
        clock_(clock), link_(link), offered_(offered) {}

    /// A request for `bytes` of body is made.
    void asked(int64_t bytes);
    void received(int64_t bytes);
    /// A request has ended; `rest` bytes of it were not received.
    void ended(int64_t rest);

    /// Starts the measurement.
    void measure();
    /// Bytes of bodies, mean over the measured time.
    double unfinished();
    /// Share of C that the link carried while any request was open; 1 if there was none.
    double utilisation();

private:
    void change(int64_t bytes, int requests);
    void closePeriod();

    const Clock &clock_;
    const Link &link_;
    const RateTrace &offered_;
    int64_t bytes_ = 0, requests_ = 0;       ///< unfinished now
    msfrs_time since_ = 0;                   ///< start of the measurement
    msfrs_time changedAt_ = 0;               ///< time of the last change of bytes_
    double byteSeconds_ = 0;                 ///< up to then
    msfrs_time openedAt_ = 0;                ///< start of the period with open requests
    int64_t openedWith_ = 0;                 ///< bytes carried by the link then
    double carried_ = 0, offeredBytes_ = 0;  ///< while requests were open, up to then
};

} // namespace msfrs::sim::access
