// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What users have asked for and do not have yet, and what the link carried meanwhile: as the field trial defines them
/// (fieldtrial/analysis/work.py), so that they mean the same of every gateway.
#ifndef MSFRS_SIM_ACCESS_WORK_H
#define MSFRS_SIM_ACCESS_WORK_H

#include "sim/access/link.h"
#include "sim/access/trace.h"

namespace msfrs::sim::access {

class Work {
public:
    /// Both are to outlive it.
    Work(const Clock &clock, const Link &link, const RateTrace &offered):
        clock_(clock), link_(link), offered_(offered) {}

    /// A request of so many bytes of body is made.
    void asked(int64_t bytes);
    void received(int64_t bytes);
    /// A request has ended; `rest` bytes of it were not received.
    void ended(int64_t rest);

    /// From now on it counts.
    void measure();
    /// Bytes of bodies, mean over the time measured.
    double unfinished();
    /// Share of C that the link carried while any request had not ended; 1 if there was none.
    double utilisation();

private:
    void change(int64_t bytes, int requests);
    void closePeriod();

    const Clock &clock_;
    const Link &link_;
    const RateTrace &offered_;
    int64_t bytes_ = 0, requests_ = 0;       ///< that are unfinished now
    msfrs_time since_ = 0;                   ///< when it began to count
    msfrs_time changedAt_ = 0;               ///< of bytes_
    double byteSeconds_ = 0;                 ///< up to then
    msfrs_time openedAt_ = 0;                ///< while any request is open: since when
    int64_t openedWith_ = 0;                 ///< what the link had carried then
    double carried_ = 0, offeredBytes_ = 0;  ///< while requests were open, up to then
};

} // namespace msfrs::sim::access

#endif
