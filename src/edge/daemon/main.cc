// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-edge: schedules the packets that iptables rules send to NFQUEUE.
#include "daemon/command_line.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "daemon/program.h"
#include "edge/daemon/daemon.h"
#include "edge/daemon/machine.h"
#include "plugin/loader.h"

#include <cstdio>

namespace msfrs::edge {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-edge [--plugins DIR] FILE
       msfrs-edge --check FILE
       msfrs-edge --ask status|metrics|reload FILE
       msfrs-edge --plugins [DIR]
Schedules packets that rules of iptables send to NFQUEUE, as the configuration FILE says (docs/user/edge.md).

  --check         only say what is wrong with FILE, if anything
  --ask COMMAND   what a running msfrs-edge says on its control socket: figures for people (status) or as OpenMetrics
                  (metrics); or has it read FILE again (reload)
  --plugins DIR   where schedulers and AQMs are, if not where they were installed; without FILE, say which there are,
                  and their parameters with defaults, what is allowed, and units
  --help          this text
  --version       which version this is

"ready" is printed on standard output once packets can come, and said to systemd. SIGHUP has FILE read again, SIGTERM and
SIGINT let go what waits, and end the program.
)";

struct Options : CommandLine {
    std::string plugins;
    bool list = false;
};

Options ParseOptions(const int argc, char **const argv)
{
    Options options;
    const auto plugins = [&options](const char *const directory) { options.plugins = directory ? directory : ""; };
    static_cast<CommandLine &>(options) = ParseCommandLine(argc, argv, Program, {{"plugins", plugins}});
    options.list = options.file.empty();
    return options;
}

void Log(const std::string &text) { std::fprintf(stderr, "msfrs-edge: %s\n", text.c_str()); }

int Run(const Options &options)
{
    if (options.list) {
        std::fputs(DescribePlugins(options.plugins).c_str(), stdout);
        return 0;
    }
    if (options.check) {
        const auto config = ReadConfig(options.file, options.plugins);
        CheckMachine(config);
        DropPrivileges(config.user); // the other checks run as that user
        if (const auto why = CheckReload(config, options.file, options.plugins); !why.empty())
            Log(why);
        return 0;
    }
    if (!options.ask.empty()) {
        const auto path = ReadConfig(options.file, options.plugins).control;
        if (path.empty())
            throw UsageError(options.file + " has no control socket: a line `control PATH` is missing");
        const auto answer = Ask(path, Program, options.ask);
        std::fputs(answer.c_str(), stdout);
        return answer.compare(0, 8, "refused:") == 0 ? 1 : 0;
    }
    Daemon daemon(options.file, options.plugins, Log);
    return daemon.run(SayReady) ? 0 : 1;
}

} // namespace

} // namespace msfrs::edge

int main(int argc, char **argv)
{
    using namespace msfrs::edge;
    return msfrs::ExitCodeOf(Program, [&] {
        const auto options = ParseOptions(argc, argv);
        if (msfrs::Answered(options, Program, Usage))
            return 0;
        return Run(options);
    });
}
