// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-share: lets the gateways of one link exchange their state through Valkey or Redis.
#include "daemon/command_line.h"
#include "daemon/notify.h"
#include "daemon/program.h"
#include "config/fields.h"
#include "satellites/share/daemon.h"

#include <cstdio>

namespace msfrs::share {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-share FILE
       msfrs-share --check FILE
       msfrs-share --ask status|metrics FILE
Divides one access link among several gateways, which exchange their state through Valkey or Redis. FILE is the
configuration (docs/design/sharing.md).

  --check         report what a start would reject in FILE and in the files that it names, and end
  --ask COMMAND   send a command to the running msfrs-share: status (figures for people) or metrics (the same as
                  OpenMetrics)
  --help          print this text
  --version       print the version

Prints "ready" on standard output, and notifies systemd, once it runs, whether or not the store answers. SIGTERM and
SIGINT end the program.
)";

void Log(const std::string &text) { std::fprintf(stderr, "%s: %s\n", Program, text.c_str()); }

int Run(const CommandLine &options)
{
    auto config = ReadConfig(options.file);
    if (!options.ask.empty()) {
        if (config.control.value.empty())
            throw UsageError(options.file + " has no control socket: a line `control PATH` is missing");
        std::fputs(Ask(config.control.value, Program, options.ask).c_str(), stdout);
        return 0;
    }
    ReadPassword(config);
    if (options.check) {
        CheckUser(config.user);
        CheckControl(config.control);
        const auto base = NewEventBase();
        RedisStore(base.get(), config.store, {config.sharing.gateway}); // reads the TLS files
        return 0;
    }
    Daemon(config, Log).run(SayReady);
    return 0;
}

} // namespace

} // namespace msfrs::share

int main(int argc, char **argv)
{
    using namespace msfrs::share;
    return msfrs::ExitCodeOf(Program, [&] {
        const auto options = msfrs::ParseCommandLine(argc, argv, Program, {"status", "metrics"});
        if (msfrs::Answered(options, Program, Usage))
            return 0;
        return Run(options);
    });
}
