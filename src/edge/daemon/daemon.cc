// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/daemon.h"

#include "daemon/machine.h"
#include "daemon/privileges.h"
#include "engine/migrate.h"

#include <csignal>
#include <fcntl.h>
#include <random>

namespace msfrs::edge {

namespace {

std::shared_ptr<const RuleTable> TableOf(const Config &config)
{
    return std::make_shared<const RuleTable>(config.rules ? *config.rules : std::vector<Rule>());
}

} // namespace

Daemon::Daemon(std::string file, std::string pluginDir, Log log):
    file_(std::move(file)), pluginDir_(std::move(pluginDir)), log_(std::move(log)), base_(NewEventBase()),
    read_(std::make_shared<const Config>(ReadConfig(file_, pluginDir_))), config_(read_),
    conditioner_(TableOf(*config_), config_->queue.threads > 1),
    kernelTable_(open("/proc/net/netfilter/nfnetlink_queue", O_RDONLY | O_CLOEXEC)),
    excessDue_(base_.get(), [this] { tellSquid(); }), lookDue_(base_.get(), [this] { lookForSegment(); })
{
    const auto fail = [this](const std::string &why) {
        log_(why);
        failed_ = true;
        kill(getpid(), SIGTERM); // ends the main thread's loop
    };
    CheckUser(config_->user);
    CheckControl(config_->control);
    MakeControlDirectory(config_->control, config_->user.value);
    if (!config_->control.value.empty())
        control_ = std::make_unique<Control>(base_.get(), config_->control.value, Program,
                                             [this](const std::string_view command) { return answer(command); });
    auto *const common = config_->queue.threads > 1 ? &common_ : nullptr;
    for (uint32_t n = 0; n < config_->queue.threads; ++n)
        workers_.push_back(std::make_unique<Worker>(n, newSchedule(config_), &conditioner_, common, fail));
    if (!config_->excess.socket.empty()) {
        excess_ = std::make_unique<Excess>(config_->excess.socket);
        for (const auto &worker : workers_) {
            worker->path().observe([this, &path = worker->path()](const Held &h, const int64_t onLink) {
                if (h.traits.readable)
                    excess_->packet(h.traits.key, static_cast<uint64_t>(onLink), path.schedule().config().flow);
            });
        }
    }
    if (!config_->segment.value.empty())
        watch_ = std::make_unique<SegmentWatch>(config_->segment.value);
    if (config_->queue.realtime) {
        realtime_ = std::make_unique<Realtime>();
        if (const int error = realtime_->error())
            log_(std::string("no real-time priority (") + std::strerror(error) +
                 "): other programs on the processors delay packets");
    }
    DropPrivileges(config_->user.value, Keep::NetAdmin); // which the kernel requires for every verdict
    for (const auto &why :
         {CheckReload(*config_, file_, pluginDir_), WhyControlStays(config_->control, config_->user.value)}) {
        if (!why.empty())
            log_(why);
    }
}

std::unique_ptr<Schedule> Daemon::newSchedule(const std::shared_ptr<const Config> &config) const
{
    const auto random = std::make_shared<std::mt19937_64>(std::random_device()());
    return std::make_unique<Schedule>(config, EngineHost{[log = log_](const int level, const std::string &text) {
                                                             if (level < 2)
                                                                 log(text);
                                                         },
                                                         [random] { return (*random)(); }});
}

bool Daemon::run(const std::function<void()> &ready)
{
    const auto end = [this] { event_base_loopbreak(base_.get()); };
    const auto hangUp = [this] {
        const auto why = reload();
        log_(why.empty() ? "the configuration was reloaded" : why);
    };
    const Event term(base_.get(), SIGTERM, EV_SIGNAL, end), interrupt(base_.get(), SIGINT, EV_SIGNAL, end),
        again(base_.get(), SIGHUP, EV_SIGNAL, hangUp);
    for (const auto &worker : workers_)
        worker->start();
    realtime_.reset(); // reports and the control socket can wait
    if (excess_)
        tellSquid();
    if (watch_)
        lookForSegment();
    ready();
    event_base_dispatch(base_.get());
    workers_.clear(); // they release waiting packets
    if (excess_)
        excess_->report();
    return !failed_;
}

void Daemon::tellSquid()
{
    excess_->report();
    excessDue_.arm(MonotonicNow() + config_->excess.interval);
}

std::string Daemon::reload()
{
    try {
        const auto next = std::make_shared<const Config>(ReadConfig(file_, pluginDir_));
        const auto restart = NeedsRestart(*config_, *next);
        if (!restart.empty())
            throw ConfigError(restart);
        takeUp(effective(*next));
        read_ = next;
        ++reloads_;
        return {};
    } catch (const std::exception &error) {
        ++refused_;
        return std::string(error.what()) + "; nothing was changed";
    }
}

/// \throws ConfigError, with nothing changed
void Daemon::takeUp(const std::shared_ptr<const Config> &next)
{
    std::vector<std::unique_ptr<Schedule>> schedules;
    for (size_t n = 0; n < workers_.size(); ++n)
        schedules.push_back(newSchedule(next));
    // Nothing can be rejected from here on.
    const auto news = BeginsAnew(config_->scheduler.plugin->ops(), next->scheduler.plugin->ops());
    if (!news.empty())
        log_(news);
    if (next->rules) {
        const auto table = TableOf(*next); // takes long, so not in the worker's thread
        workers_[0]->ask([this, &table] { conditioner_.replace(table); });
    }
    for (size_t n = 0; n < workers_.size(); ++n)
        workers_[n]->ask([&] { workers_[n]->replace(std::move(schedules[n])); });
    config_ = next;
}

std::shared_ptr<const Config> Daemon::effective(const Config &read) const
{
    return std::make_shared<const Config>(told_ && !read.segment.value.empty() ? read.withClasses(*told_) : read);
}

/// Squid may start later than this program, with another segment at each start, and change its classes at any time.
void Daemon::lookForSegment()
{
    const auto now = MonotonicNow();
    lookDue_.arm(now + SegmentWatch::Every);
    const auto change = watch_->look();
    const bool lives = segment_ && ledger::Leader(*segment_, now) != ledger::Slots;
    if (change == SegmentWatch::Change::Other || (change == SegmentWatch::Change::Gone && !lives)) {
        workers_[0]->ask([this] { workers_[0]->path().leave(); });
        segment_ = watch_->change();
        if (told_)
            told_->revision = 0;
    }
    if (segment_)
        join(*segment_);
    const auto state = "segment " + config_->segment.value + ": " + segmentState();
    if (state != said_)
        log_(state);
    said_ = state;
}

void Daemon::join(ledger::Segment &segment)
{
    if (auto list = ledger::ReadClasses(segment.directory); list && (!told_ || told_->revision != list->revision)) {
        told_ = std::move(list);
        takeUp(effective(*read_));
    }
    noSlot_.clear();
    workers_[0]->ask([&] {
        auto &path = workers_[0]->path();
        const auto now = MonotonicNow();
        if (path.party())
            return;
        try {
            path.join(std::make_unique<LinkParty>(segment, [this](int, const std::string &text) { log_(text); }, now),
                      now);
        } catch (const ConfigError &error) {
            noSlot_ = error.what();
        }
    });
}

std::string Daemon::segmentState()
{
    const std::string without = "; until then packets are paced to link rate=" +
        (config_->link.rate ? std::to_string(config_->link.rate) + "bit" : "none");
    if (!segment_)
        return "is not used: " + watch_->why() + without;
    if (!noSlot_.empty())
        return "is not used: " + noSlot_ + without;
    if (!told_ || ledger::Leader(*segment_, MonotonicNow()) == ledger::Slots)
        return "is mapped, but no worker of Squid with msfrs runs" + without;
    return "is shared, with " + std::to_string(told_->classes.size()) + " classes of Squid";
}

std::string Daemon::kernelTable() const
{
    std::string text(64 * 1024, 0);
    const auto got = pread(kernelTable_.get(), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
}

Report Daemon::report()
{
    Report r;
    r.config = config_;
    r.file = file_;
    r.upSeconds = static_cast<double>(MonotonicNow() - start_) * 1e-9;
    r.reloads = reloads_;
    r.reloadFailures = refused_;
    if (excess_)
        r.excess = excess_->counts();
    r.classes.resize(config_->classes.size());
    r.queues.resize(workers_.size());
    r.flows.resize(workers_.size());
    const auto kernel = kernelTable();
    for (size_t n = 0; n < workers_.size(); ++n) {
        auto &worker = *workers_[n];
        worker.ask([&] { worker.report(r, n); });
        ReadKernelCounts(kernel, config_->queue.number + static_cast<uint32_t>(n), r.queues[n]);
    }
    return r;
}

std::string Daemon::answer(const std::string_view command)
{
    if (command == "status")
        return Text(report());
    if (command == "metrics")
        return OpenMetrics(report());
    if (command == "reload") {
        const auto why = reload();
        return why.empty() ? "reloaded\n" : "refused: " + why + "\n";
    }
    return "unknown command; commands are status, metrics and reload\n";
}

} // namespace msfrs::edge
