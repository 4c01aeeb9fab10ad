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
Tells the gateways of one link of each other by way of Valkey or Redis, as the configuration FILE says
(docs/design/sharing.md).

  --check         only say what is wrong with FILE, if anything, and with the files that it names
  --ask COMMAND   what a running msfrs-share says on its control socket: figures for people (status) or as OpenMetrics
                  (metrics)
  --help          this text
  --version       which version this is

"ready" is printed on standard output once it runs, and said to systemd, whether or not the store answers. SIGTERM and
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
