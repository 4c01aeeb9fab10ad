// SPDX-License-Identifier: GPL-2.0-or-later
#include "config.h"

#include "daemon/command_line.h"

#include "daemon/program.h"

#include <algorithm>
#include <cstdio>
#include <getopt.h>

namespace msfrs {

namespace {

std::string Known(const std::string &ask, const std::vector<std::string> &asks)
{
    if (std::find(asks.begin(), asks.end(), ask) != asks.end())
        return ask;
    std::string known;
    for (const auto &each : asks)
        known += (known.empty() ? "" : ", ") + each;
    throw UsageError("--ask " + ask + ": unknown; commands are " + known);
}

} // namespace

CommandLine ParseCommandLine(const int argc, char **const argv, const std::string &program,
                             const std::vector<std::string> &asks, const std::vector<FurtherOption> &further)
{
    enum { Check = 1, AskIt, Help, Version, Further };
    std::vector<option> known{{"check", no_argument, nullptr, Check},
                              {"ask", required_argument, nullptr, AskIt},
                              {"help", no_argument, nullptr, Help},
                              {"version", no_argument, nullptr, Version}};
    for (size_t n = 0; n < further.size(); ++n)
        known.push_back({further[n].name, optional_argument, nullptr, Further + static_cast<int>(n)});
    known.push_back({});
    CommandLine line;
    bool other = false;
    optind = 0; // restarts the scan after earlier parsing
    for (int found; (found = getopt_long(argc, argv, "", known.data(), nullptr)) != -1;) {
        if (found == Check)
            line.check = true;
        else if (found == AskIt)
            line.ask = Known(optarg, asks);
        else if (found == Help)
            line.help = true;
        else if (found == Version)
            line.version = true;
        else if (found == '?')
            throw UsageError("see " + program + " --help");
        else {
            const bool next = !optarg && optind < argc && *argv[optind] != '-';
            further[static_cast<size_t>(found - Further)].take(next ? argv[optind++] : optarg);
            other = true;
        }
    }
    const bool wanted = !line.help && !line.version && (!other || line.check || !line.ask.empty());
    if (argc - optind > 1 || (wanted && optind == argc))
        throw UsageError("give one configuration file; see " + program + " --help");
    if (optind < argc)
        line.file = argv[optind];
    return line;
}

bool Answered(const CommandLine &line, const std::string &program, const char *const usage)
{
    if (line.help)
        std::fputs(usage, stdout);
    else if (line.version)
        std::printf("%s %s\n", program.c_str(), PACKAGE_VERSION);
    return line.help || line.version;
}

} // namespace msfrs
