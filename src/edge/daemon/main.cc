// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-edge: schedules the packets that rules of iptables send to NFQUEUE.
#include "daemon/privileges.h"
#include "edge/daemon/worker.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <random>

namespace msfrs::edge {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-edge [--plugins DIR] FILE
       msfrs-edge --check FILE
Schedules packets that rules of iptables send to NFQUEUE, as the configuration FILE says (docs/edge.md).

  --check         only say what is wrong with FILE, if anything
  --plugins DIR   where schedulers and AQMs are, if not where they were installed
  --help          this text

"ready" is printed on standard output once packets can come. SIGTERM and SIGINT let go what waits, and end the program.
)";

class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string file, plugins;
    bool check = false, help = false;
};

Options ParseOptions(const int argc, char **const argv)
{
    enum { Check = 1, Plugins, Help };
    static const option known[] = {{"check", no_argument, nullptr, Check},
                                   {"plugins", required_argument, nullptr, Plugins},
                                   {"help", no_argument, nullptr, Help},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    for (int found; (found = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (found == Check)
            options.check = true;
        else if (found == Plugins)
            options.plugins = optarg;
        else if (found == Help)
            options.help = true;
        else
            throw UsageError("see msfrs-edge --help");
    }
    if (!options.help && optind + 1 != argc)
        throw UsageError("one configuration file is wanted; see msfrs-edge --help");
    if (optind < argc)
        options.file = argv[optind];
    return options;
}

void Log(const std::string &text) { std::fprintf(stderr, "msfrs-edge: %s\n", text.c_str()); }

EngineHost HostOfPlugins()
{
    const auto random = std::make_shared<std::mt19937_64>(std::random_device()());
    return {[](const int level, const std::string &text) {
                if (level < 2)
                    Log(text);
            },
            [random] { return (*random)(); }};
}

NfQueue::Options QueueOptions(const Config &config, const uint32_t thread)
{
    NfQueue::Options options;
    options.number = config.queue.number + thread;
    // What is under way to us or from us is held as well as what waits.
    constexpr uint32_t UnderWay = 2048;
    options.length = config.limit + UnderWay;
    options.gso = config.gso();
    options.failOpen = config.queue.failOpen;
    options.conntrack = config.queue.conntrack;
    return options;
}

int Run(const std::shared_ptr<const Config> &config)
{
    const auto base = NewEventBase();
    const auto end = [&base] { event_base_loopbreak(base.get()); };
    const Event term(base.get(), SIGTERM, EV_SIGNAL, end), interrupt(base.get(), SIGINT, EV_SIGNAL, end);

    const auto tables = config->rules ? std::make_shared<const RuleTable>(*config->rules)
                                      : std::make_shared<const RuleTable>(std::vector<Rule>());
    const Published<RuleTable> published(tables);
    SharedConditioner conditioner(published, config->queue.threads);
    CommonRate common(config->queue.threads);
    std::vector<std::unique_ptr<Worker>> workers;
    for (uint32_t n = 0; n < config->queue.threads; ++n) {
        auto schedule = std::make_unique<Schedule>(config, HostOfPlugins());
        workers.push_back(std::make_unique<Worker>(QueueOptions(*config, n), std::move(schedule), &conditioner, common,
                                                   [](const std::string &why) {
                                                       Log(why);
                                                       kill(getpid(), SIGTERM);
                                                   }));
    }
    DropPrivileges(config->user, Keep::NetAdmin);
    for (const auto &worker : workers)
        worker->start();
    std::puts("ready");
    std::fflush(stdout);
    event_base_dispatch(base.get());
    return 0;
}

} // namespace

} // namespace msfrs::edge

int main(int argc, char **argv)
{
    using namespace msfrs::edge;
    try {
        const auto options = ParseOptions(argc, argv);
        if (options.help) {
            std::fputs(Usage, stdout);
            return 0;
        }
        const auto config = std::make_shared<const Config>(ReadConfig(options.file, options.plugins));
        return options.check ? 0 : Run(config);
    } catch (const UsageError &error) {
        Log(error.what());
        return 2;
    } catch (const RuleError &error) {
        Log(error.what());
        return 2;
    } catch (const std::exception &error) {
        Log(error.what());
        return 1;
    }
}
