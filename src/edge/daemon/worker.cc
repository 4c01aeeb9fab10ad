// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/worker.h"

#include <algorithm>
#include <csignal>
#include <sys/eventfd.h>
#include <sys/prctl.h>

namespace msfrs::edge {

Worker::Worker(const uint32_t n, std::unique_ptr<Schedule> schedule, Conditioner *const conditioner,
               CommonRate *const common, std::function<void(const std::string &)> failed):
    base_(NewEventBase()), queue_(schedule->config(), n),
    path_(std::move(schedule), conditioner, common, queue_, MonotonicNow()), failed_(std::move(failed)),
    bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), timer_(base_.get(), [this] { guard(&Worker::settle); }),
    readable_(base_.get(), queue_.fd(), EV_READ, [this] { guard(&Worker::take); }),
    asked_(base_.get(), bell_.get(), EV_READ, [this] { guard(&Worker::answer); })
{
}

Worker::~Worker()
{
    if (!thread_.joinable())
        return;
    ask([this] {
        // The kernel passes packets from now on, so none arrives between the last reading and the end.
        queue_.passOn();
        for (bool more = true; more;) {
            const auto &arrivals = queue_.read(more);
            path_.arrive(arrivals.data(), arrivals.size(), MonotonicNow());
        }
        path_.flush(MonotonicNow());
        queue_.flush();
        event_base_loopbreak(base_.get());
    });
    thread_.join();
}

void Worker::start()
{
    // The main thread handles signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::run()
{
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); // ns; the default of 50 us is several packets
    event_base_dispatch(base_.get());
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    questions_.clear();
}

void Worker::guard(void (Worker::*const what)())
{
    try {
        (this->*what)();
    } catch (const std::exception &error) {
        event_base_loopbreak(base_.get());
        failed_(error.what());
    }
}

void Worker::take()
{
    // Bounded, so that a flood does not delay the timer and questions.
    bool more = true;
    for (int turns = 0; turns < 8 && more; ++turns) {
        const auto &arrivals = queue_.read(more);
        path_.arrive(arrivals.data(), arrivals.size(), MonotonicNow());
        queue_.flush();
    }
    settle();
}

void Worker::settle()
{
    const auto now = MonotonicNow();
    path_.service(now);
    constexpr msfrs_time Often = 5'000'000'000; // ns; flows are freed after 10 s of idle time
    if (now - tidied_ > Often) {
        path_.tidy(now);
        tidied_ = now;
    }
    queue_.flush();
    // A timer for each packet of a fast link would cost more than all else. The pacer compensates for a late call; if
    // no packet waits, an early call does no harm.
    constexpr msfrs_time Late = 100'000; // ns; the pacer compensates for up to Pacer::MostLate, 50 ms
    if (queue_.pending())
        timer_.arm(now + 10 * Late);
    else if (const auto next = path_.next())
        timer_.armBetween(*next, std::max(*next, now + Late));
}

void Worker::answer()
{
    uint64_t rung = 0;
    if (::read(bell_.get(), &rung, sizeof(rung)) < 0 && errno != EAGAIN)
        Fail("a worker's bell");
    std::vector<Question> questions;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        questions.swap(questions_);
    }
    for (auto &question : questions) {
        question.what();
        question.answered.set_value();
    }
    settle();
}

void Worker::replace(std::unique_ptr<Schedule> next)
{
    queue_.adopt(next->config());
    path_.replace(std::move(next), MonotonicNow());
}

void Worker::report(Report &r, const size_t n) const
{
    const auto counts = path_.counts();
    for (size_t c = 0; c < counts.size(); ++c)
        r.classes[c] += counts[c];
    auto &queue = r.queues[n];
    queue = queue_.counts();
    queue.unreadable = path_.unreadable();
    r.conntrack = queue_.conntrack();
    r.party = path_.party() != nullptr;
    r.share = r.party ? path_.party()->rate() : 0;
    if (path_.found())
        r.found = path_.found()->report(MonotonicNow());
    const auto &schedule = path_.schedule();
    const auto &engine = schedule.engine();
    r.flows[n] = engine.flows();
    const auto add = [&](const char *const kind, const msfrs_plugin *const plugin, const std::vector<double> &values,
                         const size_t cls) {
        for (size_t g = 0; g < values.size(); ++g)
            r.gauges.push_back({kind, plugin->gauges[g].name, plugin->gauges[g].unit, cls, n, values[g]});
    };
    add("scheduler", &engine.scheduler(), engine.gauges(nullptr), NoClass);
    add("aqm", engine.aqm(), engine.aqmGauges(nullptr), NoClass);
    for (size_t c = 0; c < counts.size(); ++c) {
        if (schedule.config().classes[c].interior)
            continue;
        add("scheduler", &engine.scheduler(), engine.gauges(&schedule.classAt(c)), c);
        add("aqm", engine.aqm(), engine.aqmGauges(&schedule.classAt(c)), c);
    }
}

void Worker::ask(std::function<void()> what)
{
    std::future<void> answered;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (ended_)
            return;
        answered = questions_.emplace_back(Question{std::move(what), {}}).answered.get_future();
    }
    const uint64_t ring = 1;
    if (write(bell_.get(), &ring, sizeof(ring)) < 0)
        Fail("a worker's bell");
    answered.wait();
}

} // namespace msfrs::edge
