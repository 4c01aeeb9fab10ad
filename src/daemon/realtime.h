// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Real-time priority for a thread.
#pragma once

#include <cerrno>
#include <sched.h>

namespace msfrs {

/// While it lives, the calling thread has real-time priority (SCHED_RR, the lowest). Threads that it starts meanwhile
/// keep that for good.
class Realtime {
public:
    Realtime(): before_(sched_getscheduler(0))
    {
        sched_getparam(0, &beforeParam_);
        const sched_param lowest{1};
        error_ = sched_setscheduler(0, SCHED_RR, &lowest) == 0 ? 0 : errno;
    }
    ~Realtime()
    {
        if (error_ == 0)
            sched_setscheduler(0, before_, &beforeParam_);
    }
    Realtime(const Realtime &) = delete;

    /// 0, or errno if it was denied.
    int error() const { return error_; }

private:
    int before_, error_;
    sched_param beforeParam_{};
};

} // namespace msfrs
