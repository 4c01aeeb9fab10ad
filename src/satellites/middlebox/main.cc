// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-middlebox: passes packets of NFQUEUE through middlebox functions, to test multi-resource schedulers with real
/// packets. For research: it has one thread, no control socket and no reload, and is not installed.
#include "daemon/descriptor.h"
#include "daemon/event.h"
#include "daemon/machine.h"
#include "daemon/privileges.h"
#include "daemon/program.h"
#include "edge/daemon/nfqueue.h"
#include "satellites/middlebox/box.h"
#include "satellites/middlebox/calibrate.h"
#include "satellites/middlebox/functions_file.h"

#include <csignal>
#include <cstdio>
#include <getopt.h>
#include <iostream>
#include <poll.h>
#include <random>
#include <sys/prctl.h>
#include <sys/signalfd.h>

namespace msfrs::middlebox {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-middlebox [--plugins DIR] EDGE FUNCTIONS
       msfrs-middlebox --calibrate
Schedules the packets that iptables rules send to NFQUEUE, and processes those of some classes by middlebox functions.
EDGE is a configuration of msfrs-edge, FUNCTIONS names the functions (docs/design/middlebox.md).

  --calibrate     measure the processor time of the functions, and print it as fields of FUNCTIONS
  --plugins DIR   load schedulers and AQMs from DIR
  --help          print this text

Prints "ready" on standard output once packets are scheduled. SIGTERM and SIGINT release the waiting packets, print the
figures and end the program.
)";

struct Options {
    std::string edge, functions, plugins;
    bool calibrate = false, help = false;
};

Options ParseOptions(const int argc, char **const argv)
{
    enum { Calibration = 1, Plugins, Help };
    static const option known[] = {{"calibrate", no_argument, nullptr, Calibration},
                                   {"plugins", required_argument, nullptr, Plugins},
                                   {"help", no_argument, nullptr, Help},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    for (int found; (found = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (found) {
        case Calibration: options.calibrate = true; break;
        case Plugins: options.plugins = optarg; break;
        case Help: options.help = true; return options;
        default: throw UsageError("see msfrs-middlebox --help");
        }
    }
    if (argc - optind != (options.calibrate ? 0 : 2))
        throw UsageError("expected two files, or --calibrate alone; see msfrs-middlebox --help");
    if (!options.calibrate) {
        options.edge = argv[optind];
        options.functions = argv[optind + 1];
    }
    return options;
}

/// SIGTERM and SIGINT as a file descriptor, instead of ending the process.
Descriptor EndSignals()
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    Descriptor made(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
    if (made.get() < 0)
        Fail("signals");
    return made;
}

/// Reads pending packets, up to `most` times, and passes them to the box.
void Take(edge::NfQueue &queue, Box &box, const int most)
{
    bool more = true;
    for (int turn = 0; turn < most && more; ++turn) {
        for (const auto &arrival : queue.read(more))
            box.arrive(arrival, MonotonicNow());
    }
}

/// Serves until a signal arrives. \throws SystemError
void Serve(edge::NfQueue &queue, Box &box, const int signals)
{
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); // ns; the default of 50 us is the time of several packets
    pollfd watched[] = {{queue.fd(), POLLIN, 0}, {signals, POLLIN, 0}};
    while (!watched[1].revents) {
        const auto now = MonotonicNow();
        // Verdicts for which the kernel had no memory are sent again.
        constexpr msfrs_time Again = 1'000'000;
        const auto next = queue.pending() ? now + Again : box.next();
        const auto wait = next ? std::max<msfrs_time>(0, *next - now) : 0;
        const timespec left{wait / 1'000'000'000, wait % 1'000'000'000};
        if (ppoll(watched, std::size(watched), next ? &left : nullptr, nullptr) < 0 && errno != EINTR)
            Fail("waiting for packets");
        if (watched[0].revents)
            Take(queue, box, 8); // bounded, so that a flood does not block the link
        box.service(MonotonicNow());
        queue.flush();
    }
    // From now on the kernel passes new packets, so none is lost between the last read and the end.
    queue.passOn();
    Take(queue, box, INT32_MAX);
    box.flush(MonotonicNow());
    queue.flush();
}

int Run(const Options &options)
{
    const auto random = std::make_shared<std::mt19937_64>(std::random_device()());
    const EngineHost host{[](const int level, const std::string &text) {
                              if (level < 2)
                                  std::fprintf(stderr, "msfrs-middlebox: %s\n", text.c_str());
                          },
                          [random] { return (*random)(); }};
    if (options.calibrate) {
        FunctionOptions functions;
        functions.random = host.random;
        return Calibrate(std::cout, functions, ThreadTime);
    }
    const auto config = std::make_shared<const edge::Config>(edge::ReadConfig(options.edge, options.plugins));
    CheckConfig(*config, options.edge);
    CheckUser(config->user);
    CheckControl(config->control);
    const auto functions = ReadFunctions(options.functions, *config);
    const auto signals = EndSignals();
    edge::NfQueue queue(*config, 0, edge::NfQueue::Whole);
    Box box(std::make_unique<edge::Schedule>(config, host, 2), functions, host.random, ThreadTime, queue,
            MonotonicNow());
    DropPrivileges(config->user.value, Keep::NetAdmin); // the kernel requires it for every verdict
    std::puts("ready");
    std::fflush(stdout);
    Serve(queue, box, signals.get());
    std::fputs(box.report().c_str(), stdout);
    std::printf("queue %u: unscheduled %llu, overruns %llu\n", config->queue.number,
                static_cast<unsigned long long>(queue.counts().unscheduled),
                static_cast<unsigned long long>(queue.counts().overruns));
    return 0;
}

} // namespace

} // namespace msfrs::middlebox

int main(int argc, char **argv)
{
    using namespace msfrs::middlebox;
    return msfrs::ExitCodeOf("msfrs-middlebox", [&] {
        const auto options = ParseOptions(argc, argv);
        if (options.help) {
            std::fputs(Usage, stdout);
            return 0;
        }
        return Run(options);
    });
}
