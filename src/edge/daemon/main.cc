// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-edge: schedules the packets that iptables rules send to NFQUEUE.
#include "daemon/command_line.h"
#include "daemon/machine.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "daemon/program.h"
#include "edge/daemon/daemon.h"
#include "plugin/loader.h"

#include <cstdio>

namespace msfrs::edge {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-edge [--plugins DIR] FILE
       msfrs-edge --check FILE
       msfrs-edge --ask status|metrics|reload FILE
       msfrs-edge --plugins [DIR]
Schedules the packets that iptables rules send to NFQUEUE. FILE is the configuration (docs/user/edge.md).

  --check         report what a start would reject in FILE, and end
  --ask COMMAND   send a command to the running msfrs-edge: status (figures for people), metrics (the same as
                  OpenMetrics) or reload (read FILE again)
  --plugins DIR   load schedulers and AQMs from DIR; without FILE, list them, and the default, range and unit of each
                  of their parameters
  --help          print this text
  --version       print the version

Prints "ready" on standard output, and notifies systemd, once packets are scheduled. SIGHUP reloads FILE. SIGTERM and
SIGINT release the waiting packets and end the program.
)";

struct Options : CommandLine {
    std::string plugins;
};

Options ParseOptions(const int argc, char **const argv)
{
    Options options;
    const auto plugins = [&options](const char *const directory) { options.plugins = directory ? directory : ""; };
    static_cast<CommandLine &>(options) =
        ParseCommandLine(argc, argv, Program, {"status", "metrics", "reload"}, {{"plugins", plugins}});
    return options;
}

void Log(const std::string &text) { std::fprintf(stderr, "msfrs-edge: %s\n", text.c_str()); }

int Run(const Options &options)
{
    if (options.file.empty()) {
        std::fputs(DescribePlugins(options.plugins).c_str(), stdout);
        return 0;
    }
    if (options.check) {
        const auto config = ReadConfig(options.file, options.plugins);
        CheckUser(config.user);
        CheckControl(config.control);
        DropPrivileges(config.user.value); // the other checks run as that user
        if (const auto why = CheckReload(config, options.file, options.plugins); !why.empty())
            Log(why);
        return 0;
    }
    if (!options.ask.empty()) {
        const auto path = ReadConfig(options.file, options.plugins).control.value;
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
