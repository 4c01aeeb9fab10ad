// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/service.h"

#include "daemon/privileges.h"

#include <arpa/inet.h>
#include <csignal>
#include <ctime>
#include <event2/util.h>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>

namespace msfrs::page {

namespace {

constexpr int64_t Second = 1'000'000'000;

double MonotonicSeconds() { return static_cast<double>(MonotonicNow()) * 1e-9; }
int64_t WallSeconds() { return static_cast<int64_t>(std::time(nullptr)); }

Descriptor Listen(const Endpoint &at)
{
    Descriptor made(socket(at.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    v4.sin_family = AF_INET;
    v4.sin_port = v6.sin6_port = htons(at.port);
    v6.sin6_family = AF_INET6;
    inet_pton(at.v6 ? AF_INET6 : AF_INET, at.address.c_str(),
              at.v6 ? static_cast<void *>(&v6.sin6_addr) : static_cast<void *>(&v4.sin_addr));
    const auto *const address =
        at.v6 ? reinterpret_cast<const sockaddr *>(&v6) : reinterpret_cast<const sockaddr *>(&v4);
    if (made.get() < 0 || setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(made.get(), address, at.v6 ? sizeof(v6) : sizeof(v4)) < 0 || listen(made.get(), 64) < 0)
        Fail("listen " + at.text());
    return made;
}

Access AccessOf(const Config &config)
{
    Access access;
    access.hosts = {"localhost", "127.0.0.1", "[::1]", config.listen.host()};
    if (config.users)
        access.hosts.push_back(config.users->host());
    access.hosts.insert(access.hosts.end(), config.hosts.begin(), config.hosts.end());
    if (!config.tokenFile.empty())
        access.token = ReadToken(config.tokenFile);
    return access;
}

/// Replaces a file by a text atomically, so that a crash leaves either the old or the new one.
void Replace(const std::string &path, const std::string &text)
{
    const auto made = path + ".new";
    const Descriptor file(open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640));
    if (file.get() < 0)
        Fail(made);
    for (size_t done = 0; done < text.size();) {
        const auto n = write(file.get(), text.data() + done, text.size() - done);
        if (n < 0)
            Fail(made);
        done += static_cast<size_t>(n);
    }
    if (fsync(file.get()) < 0 || rename(made.c_str(), path.c_str()) < 0)
        Fail(path);
}

} // namespace

Service::Service(const Config &config, Log log):
    config_(config), log_(std::move(log)), site_(AccessOf(config), ReadFiles(config.web, config.chart, log_)),
    usersSite_(AccessOf(config), site_.files(), Audience::Users), names_(config.names),
    squid_(base_.get(), config.squid), due_(base_.get(), [this] { poll(); }), saveDue_(base_.get(), [this] { save(); }),
    server_(base_.get(), Listen(config.listen), {MostConnections, MostHead, Patience},
            [this](const std::string_view got, const std::string &peer) { return site_.answer(got, peer, prepared_); })
{
    if (config.users)
        usersServer_.emplace(base_.get(), Listen(*config.users),
                             AnswerServer::Limits{MostConnections, MostHead, Patience},
                             [this](const std::string_view got, const std::string &peer) {
                                 return usersSite_.answer(got, peer, prepared_);
                             });
    DropPrivileges(config_.user.value);
    prepared_.user = [this](const std::string &name) {
        return figures_.userJson(name, prepared_.trouble, figures_.age(MonotonicSeconds()));
    };
    prepared_.past = [this](const std::string &name) { return figures_.pastJson(name); };
    prepared_.own = [this](const std::string &address) {
        return figures_.ownJson(address, prepared_.trouble, figures_.age(MonotonicSeconds()));
    };
    if (!config_.boosts.empty()) {
        boosts_.emplace(config_.boosts);
        figures_.offerBoosts();
        prepared_.boost = [this](const std::string &name) {
            const auto user = figures_.userOf(name);
            if (!user)
                throw Refused(404, "There is no such user now.");
            boosts_->ask(*user);
            log_("a boost of " + *user + " was requested");
        };
    }
    readNames();
    load();
    prepared_.trouble = "Squid has not been queried yet.";
    prepared_.data = figures_.dataJson(WallSeconds(), config_.pace, prepared_.trouble);
    prepared_.history = figures_.history().json();
    prepared_.users = figures_.usersJson();
}

void Service::run(const std::function<void()> &ready)
{
    const auto end = [this] { event_base_loopbreak(base_.get()); };
    const Event term(base_.get(), SIGTERM, EV_SIGNAL, end), interrupt(base_.get(), SIGINT, EV_SIGNAL, end);
    if (!config_.history.empty())
        saveDue_.arm(MonotonicNow() + SavePace * Second);
    poll();
    ready();
    event_base_dispatch(base_.get());
    save();
}

void Service::ask(const char *const action, const std::function<void(const ManagerPage &)> &take)
{
    try {
        squid_.ask(action, [this, action, take](const ManagerPage &page) {
            // Exceptions must not pass through libevent.
            try {
                take(page);
            } catch (const std::exception &error) {
                polled("mgr:" + std::string(action) + ": " + error.what());
            }
        });
    } catch (const SystemError &error) {
        polled(error.what());
    }
}

void Service::poll()
{
    pollDue_ = MonotonicNow() + config_.pace * Second;
    ask("msfrs-metrics", [this](const ManagerPage &page) {
        if (page.status != 200)
            return polled(page.why);
        figures_.takeMetrics(page.text, MonotonicSeconds(), WallSeconds());
        pollReport();
    });
}

void Service::pollReport()
{
    ask("msfrs", [this](const ManagerPage &page) {
        if (page.status != 200)
            return polled(page.why);
        figures_.takeReport(page.text);
        if (MonotonicNow() >= usersDue_)
            pollUsers();
        else
            polled("");
    });
}

void Service::pollUsers()
{
    usersDue_ = MonotonicNow() + UsersPace * Second;
    ask("msfrs-users", [this](const ManagerPage &page) {
        if (page.status == 200)
            figures_.takeUsers(page.text, MonotonicSeconds(), WallSeconds());
        else
            figures_.takeTopUsers(MonotonicSeconds(), WallSeconds()); // Squid is older
        readNames();
        prepared_.users = figures_.usersJson();
        polled("");
    });
}

void Service::readNames()
{
    if (auto book = names_.changed(log_))
        figures_.takeNames(std::move(*book));
}

void Service::polled(const std::string &why)
{
    if (why != prepared_.trouble)
        log_(why.empty() ? "Squid at " + config_.squid.text() + " answers" : why);
    prepared_.trouble = why;
    figures_.takeFaults(report::FaultsOf(config_.faults));
    const auto wall = WallSeconds();
    if (!why.empty())
        figures_.history().advance(wall);
    prepared_.data = figures_.dataJson(wall, config_.pace, why, figures_.age(MonotonicSeconds()));
    if (const auto slot = figures_.history().newest(); slot != slot_) {
        slot_ = slot;
        prepared_.history = figures_.history().json();
    }
    due_.arm(std::max(pollDue_, MonotonicNow() + 1));
}

void Service::load()
{
    std::ifstream in(config_.history);
    if (config_.history.empty() || !in)
        return;
    try {
        figures_.history().load(in, WallSeconds());
    } catch (const std::runtime_error &error) {
        log_("history " + config_.history + ": " + error.what() + "; the history starts empty");
    }
}

void Service::save()
{
    if (config_.history.empty())
        return;
    saveDue_.arm(MonotonicNow() + SavePace * Second);
    std::string trouble;
    try {
        std::ostringstream text;
        figures_.history().save(text);
        Replace(config_.history, text.str());
    } catch (const SystemError &error) {
        trouble = "history: " + std::string(error.what());
    }
    if (!trouble.empty() && trouble != saveTrouble_)
        log_(trouble);
    saveTrouble_ = trouble;
}

} // namespace msfrs::page
