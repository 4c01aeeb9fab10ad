// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-page: a live page of the scheduler's state.
#include "daemon/command_line.h"
#include "daemon/machine.h"
#include "daemon/notify.h"
#include "daemon/program.h"
#include "config/fields.h"
#include "satellites/page/service.h"

#include <cstdio>
#include <cstring>

namespace msfrs::page {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-page [--check] FILE
Serves a web page with the live state of Squid's scheduler. FILE is the configuration (docs/user/page.md).

  --check    report what a start would reject in FILE, and end
  --help     print this text
  --version  print the version

Prints "ready" on standard output, and notifies systemd, once it answers requests. SIGTERM and SIGINT end the program.
)";

int Run(const int argc, char **const argv)
{
    const bool check = argc > 1 && std::strcmp(argv[1], "--check") == 0;
    CommandLine line;
    line.help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    line.version = argc == 2 && std::strcmp(argv[1], "--version") == 0;
    if (Answered(line, "msfrs-page", Usage))
        return 0;
    if (argc != (check ? 3 : 2) || argv[argc - 1][0] == '-')
        throw UsageError("give one configuration file, such as /etc/msfrs/page.conf; see msfrs-page --help");
    const auto log = [](const std::string &text) {
        std::fprintf(stderr, "msfrs-page: %s\n", Printable(text).c_str());
    };
    const auto config = ReadConfig(argv[argc - 1]);
    CheckUser(config.user);
    if (check) {
        if (!config.tokenFile.empty())
            ReadToken(config.tokenFile);
        ReadFiles(config.web, config.chart, log);
        NameFiles(config.names).changed(log);
        return 0;
    }
    event_set_log_callback([](int, const char *) {}); // we report once that Squid is unreachable
    Service service(config, log);
    service.run(SayReady);
    return 0;
}

} // namespace

} // namespace msfrs::page

int main(int argc, char **argv)
{
    return msfrs::ExitCodeOf("msfrs-page", [&] { return msfrs::page::Run(argc, argv); });
}
