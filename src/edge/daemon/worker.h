// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One queue, its packet path and its thread.
#pragma once

#include "daemon/event.h"
#include "edge/daemon/nfqueue.h"
#include "edge/daemon/packet_path.h"
#include "edge/daemon/report.h"

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace msfrs::edge {

class Worker {
public:
    /// \param n of its queue among those of the configuration
    /// \param failed called in the worker's thread, once, when it cannot continue
    Worker(uint32_t n, std::unique_ptr<Schedule>, Conditioner *, CommonRate *,
           std::function<void(const std::string &)> failed);
    /// Ends the thread. Waiting packets are released first, in order, unless the worker had failed.
    ~Worker();
    Worker(const Worker &) = delete;

    void start();
    /// Calls `what` in the worker's thread, and returns when it is done, or when the worker has ended. Not from that
    /// thread.
    void ask(std::function<void()> what);

    // Once started, only for functions passed to ask():
    PacketPath &path() { return path_; }
    /// Switches to another configuration; see PacketPath::replace().
    void replace(std::unique_ptr<Schedule>);
    /// Adds the figures of this worker, the n-th.
    void report(Report &, size_t n) const;

private:
    struct Question {
        std::function<void()> what;
        std::promise<void> answered; ///< broken if the worker ends first
    };

    void run();
    void take();
    void answer();
    void settle();
    void guard(void (Worker::*what)());

    EventBase base_;
    NfQueue queue_;
    PacketPath path_;
    std::function<void(const std::string &)> failed_;
    Descriptor bell_; ///< signals a new question
    Timer timer_;
    Event readable_, asked_;
    std::mutex mutex_;
    std::vector<Question> questions_;
    bool ended_ = false; ///< questions are no longer answered
    msfrs_time tidied_ = 0;
    std::thread thread_;
};

} // namespace msfrs::edge
