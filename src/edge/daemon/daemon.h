// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The daemon: workers, signals, reloads, the control socket.
#pragma once

#include "daemon/control.h"
#include "daemon/realtime.h"
#include "daemon/segment_watch.h"
#include "edge/daemon/excess.h"
#include "edge/daemon/report.h"
#include "edge/daemon/worker.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace msfrs::edge {

class Daemon {
public:
    using Log = std::function<void(const std::string &)>;

    /// Takes the queues, opens the control socket and gives up root. \param log called in any thread
    /// \throws RuleError an error in the file \throws SystemError a missing resource
    Daemon(std::string file, std::string pluginDir, Log log);

    /// Schedules packets until SIGTERM or SIGINT; SIGHUP reloads. \param ready called once packets can arrive
    /// \returns false after a failure, which was logged
    bool run(const std::function<void()> &ready);

    /// Reads the file again. \returns an empty string, or the reason why nothing has changed
    std::string reload();
    Report report();

private:
    std::string answer(std::string_view command);
    std::unique_ptr<Schedule> newSchedule(const std::shared_ptr<const Config> &) const;
    std::string kernelTable() const;
    void tellSquid();
    void takeUp(const std::shared_ptr<const Config> &next);
    std::shared_ptr<const Config> effective(const Config &) const;
    void lookForSegment();
    void join(ledger::Segment &);
    std::string segmentState();

    std::string file_, pluginDir_;
    Log log_;
    EventBase base_;
    std::shared_ptr<const Config> read_, config_; ///< from the file; in effect
    Conditioner conditioner_;
    CommonRate common_;
    msfrs_time start_ = MonotonicNow();
    uint64_t reloads_ = 0, refused_ = 0;
    Descriptor kernelTable_; ///< readable only by root, so opened before root is given up
    std::unique_ptr<Control> control_;
    std::unique_ptr<Excess> excess_; ///< null: no reports to Squid
    Timer excessDue_;
    std::unique_ptr<SegmentWatch> watch_; ///< null: no party of a ledger. Outlives the workers, which write there
    ledger::Segment *segment_ = nullptr;
    std::optional<ledger::ClassList> told_; ///< Squid's classes
    std::string noSlot_, said_;             ///< why there is no slot in the segment; the latest log line about it
    Timer lookDue_;
    std::atomic<bool> failed_{false};
    std::unique_ptr<Realtime> realtime_; ///< until the workers have started
    std::vector<std::unique_ptr<Worker>> workers_;
};

} // namespace msfrs::edge
