// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/daemon.h"

#include "daemon/privileges.h"

#include <algorithm>
#include <csignal>
#include <random>

namespace msfrs::share {

namespace {

uint64_t RandomLife()
{
    std::random_device source;
    return uint64_t{source()} << 32 | source();
}

/// All gateways of the link, this one first.
std::vector<std::string> NamesOf(const SharingParams &sharing)
{
    std::vector<std::string> names{sharing.gateway};
    names.insert(names.end(), sharing.others.begin(), sharing.others.end());
    return names;
}

} // namespace

Daemon::Daemon(const Config &config, StateLog::Log log):
    config_(config), log_(log), base_(NewEventBase()), watch_(config.segment), board_(config.sharing.others.size()),
    store_(base_.get(), config.store, NamesOf(config.sharing)),
    sharing_(config.sharing, board_, store_, log, RandomLife(), MonotonicNow()), due_(base_.get(), [this] { tick(); })
{
    CheckUser(config_.user);
    CheckControl(config_.control);
    MakeControlDirectory(config_.control, config_.user.value);
    if (!config_.control.value.empty())
        control_ = std::make_unique<Control>(base_.get(), config_.control.value, Program,
                                             [this](const std::string_view command) { return answer(command); });
    DropPrivileges(config_.user.value);
    if (const auto why = WhyControlStays(config_.control, config_.user.value); !why.empty())
        log(why);
}

Daemon::~Daemon() { board_.use(nullptr); }

void Daemon::run(const std::function<void()> &ready)
{
    const auto end = [this] {
        board_.use(nullptr);
        lookAt_ = INT64_MAX;
        const auto last = static_cast<suseconds_t>(3 * config_.sharing.interval / 1000);
        const timeval patience{last / 1'000'000, last % 1'000'000};
        event_base_loopexit(base_.get(), &patience);
    };
    const Event term(base_.get(), SIGTERM, EV_SIGNAL, end), interrupt(base_.get(), SIGINT, EV_SIGNAL, end);
    tick();
    ready();
    event_base_dispatch(base_.get());
}

void Daemon::tick()
{
    const auto now = MonotonicNow();
    if (now >= lookAt_)
        lookForSegment(now);
    due_.arm(std::min(sharing_.tick(now), lookAt_));
}

void Daemon::lookForSegment(const int64_t now)
{
    lookAt_ = now + SegmentWatch::Every;
    // A removed name may reappear: while any party is alive in the mapped memory, that is the segment.
    const auto change = watch_.look();
    if (change == SegmentWatch::Change::Other || (change == SegmentWatch::Change::Gone && board_.parties() == 0)) {
        board_.use(nullptr);
        board_.use(watch_.change());
    }
    log_.say("segment " + config_.segment, watch_.mapped() ? "is mapped" : "is not mapped: " + watch_.why(), now);
}

Report Daemon::report()
{
    const auto now = MonotonicNow();
    Report r;
    r.gateway = config_.sharing.gateway;
    r.link = config_.store.link;
    r.store = config_.sharing.store;
    r.share = config_.sharing.share;
    r.upSeconds = static_cast<double>(now - start_) * 1e-9;
    r.segment = watch_.mapped();
    r.parties = board_.parties();
    r.crowded = board_.crowded();
    r.sharing = sharing_.report(now);
    return r;
}

std::string Daemon::answer(const std::string_view command)
{
    if (command == "status")
        return Text(report());
    if (command == "metrics")
        return OpenMetrics(report());
    return "unknown command; commands are status and metrics\n";
}

} // namespace msfrs::share
