// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A turn on the processor as soon as it is wanted.
#ifndef MSFRS_DAEMON_REALTIME_H
#define MSFRS_DAEMON_REALTIME_H

#include <cerrno>
#include <sched.h>

namespace msfrs {

/// While it lives, the calling thread, and for good the threads that it starts, go before all that has no real-time
/// priority (SCHED_RR, the lowest of these).
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

    /// 0, or errno: it was refused.
    int error() const { return error_; }

private:
    int before_, error_;
    sched_param beforeParam_{};
};

} // namespace msfrs

#endif
