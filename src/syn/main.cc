// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-syn: holds SYNs that msfrs-iptables queues until their servers have answered.
#include "daemon/command_line.h"
#include "daemon/machine.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "daemon/program.h"
#include "edge/daemon/config.h"
#include "edge/daemon/nfqueue.h"
#include "syn/config.h"
#include "syn/half_open.h"

#include <csignal>
#include <cstdio>
#include <sys/resource.h>

namespace msfrs::syn {

namespace {

constexpr const char *Program = "msfrs-syn";
constexpr const char *Usage =
    R"(Usage: msfrs-syn FILE
       msfrs-syn --check FILE
Answers the SYN of an intercepted connection when its server does: a client whose server is silent, refuses or cannot be
reached sees that, as without Squid, and tries the server's next address (Happy Eyeballs). FILE is the configuration of
msfrs-iptables, whose rules queue the SYNs; without this program they pass to Squid at once. Read from it are

  mode            with tproxy a probe has the client's address, with redirect the gateway's
  syn-queue       number of the NFQUEUE; none: there is nothing to do
  syn-mark        VALUE/MASK of the firewall mark for SYNs that are forwarded instead, to a server that refuses
  squid-user      whose rights the program takes: a firewall lets its probes pass as Squid's connections

  --check         report what a start would reject in FILE, and end
  --help          print this text
  --version       print the version

Prints "ready" on standard output, and notifies systemd, once SYNs are held. SIGTERM and SIGINT pass the waiting SYNs to
Squid and end the program.
)";

/// The options of msfrs-edge's queue for this one.
edge::Config QueueOf(const Config &config)
{
    edge::Config queue;
    queue.queue.number = *config.queue;
    queue.queue.gso = edge::QueueConfig::Gso::Off;
    queue.queue.conntrack = false;
    queue.queue.buffer = 1u << 20; // bytes: some hundred SYNs at a time; more pass to Squid
    queue.limit = Gate::MostHeld;
    return queue;
}

/// A probe is a socket.
void AllowSockets()
{
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

class Daemon {
public:
    explicit Daemon(const Config &config):
        base_(NewEventBase()), queue_(QueueOf(config), 0),
        prober_(base_.get(), config.transparent, [this](const Server &server, const Outcome outcome) {
            gate_.finish(server, outcome, MonotonicNow());
            settle();
        }),
        gate_(prober_, queue_, config.bits), timer_(base_.get(), [this] { settle(); }),
        readable_(base_.get(), queue_.fd(), EV_READ, [this] { take(); })
    {
        AllowSockets();
        DropPrivileges(config.user.value, Keep::NetAdmin); // which the kernel requires for every verdict
    }

    void run(const std::function<void()> &ready)
    {
        const auto end = [this] { event_base_loopbreak(base_.get()); };
        const Event term(base_.get(), SIGTERM, EV_SIGNAL, end), interrupt(base_.get(), SIGINT, EV_SIGNAL, end);
        ready();
        event_base_dispatch(base_.get());
        queue_.passOn();
        for (bool more = true; more;)
            more = arrive();
        gate_.release();
        queue_.flush();
    }

private:
    /// \returns whether more SYNs may wait in the kernel
    bool arrive()
    {
        bool more = false;
        for (const auto &packet : queue_.read(more))
            gate_.arrive(packet, MonotonicNow());
        return more;
    }
    void take()
    {
        arrive(); // bounded, so that a flood does not delay outcomes
        settle();
    }
    void settle()
    {
        constexpr msfrs_time Again = 1'000'000; // ns
        const auto now = MonotonicNow();
        gate_.expire(now);
        queue_.flush();
        timer_.arm(queue_.pending() ? now + Again : gate_.next());
    }

    EventBase base_;
    edge::NfQueue queue_;
    HalfOpen prober_;
    Gate gate_;
    Timer timer_;
    Event readable_;
};

int Run(const CommandLine &line)
{
    const auto config = ReadConfig(line.file);
    CheckUser(config.user);
    if (line.check)
        return 0;
    if (!config.queue) {
        std::fprintf(stderr, "%s: %s: syn-queue = none: nothing to do\n", Program, line.file.c_str());
        return 0;
    }
    Daemon(config).run(SayReady);
    return 0;
}

} // namespace

} // namespace msfrs::syn

int main(int argc, char **argv)
{
    using namespace msfrs::syn;
    return msfrs::ExitCodeOf(Program, [&] {
        const auto line = msfrs::ParseCommandLine(argc, argv, Program, {});
        return msfrs::Answered(line, Program, Usage) ? 0 : Run(line);
    });
}
