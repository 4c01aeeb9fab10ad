// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The daemon: the segment, the store, the control socket, signals.
#pragma once

#include "daemon/control.h"
#include "daemon/event.h"
#include "daemon/segment_watch.h"
#include "satellites/share/config.h"
#include "satellites/share/report.h"
#include "satellites/share/segment_board.h"

#include <functional>
#include <string>

namespace msfrs::share {

class Daemon {
public:
    /// Reads the TLS files, opens the control socket and drops root. \param config with its password
    /// \throws RuleError an error in the file \throws SystemError a missing resource
    Daemon(const Config &config, StateLog::Log log);
    ~Daemon();

    /// Runs until SIGTERM or SIGINT, and then reports to the others that this gateway has no demand. \param ready
    /// called once
    void run(const std::function<void()> &ready);

private:
    std::string answer(std::string_view command);
    Report report();
    void tick();
    void lookForSegment(int64_t now);

    const Config config_;
    StateLog log_;
    EventBase base_;
    int64_t start_ = MonotonicNow();
    SegmentWatch watch_; ///< outlives the board, which writes to its mapping
    int64_t lookAt_ = 0;
    SegmentBoard board_;
    RedisStore store_;
    Sharing sharing_;
    Timer due_;
    std::unique_ptr<Control> control_;
};

} // namespace msfrs::share
