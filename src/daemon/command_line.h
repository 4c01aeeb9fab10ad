// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The command line common to the daemons.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace msfrs {

/// FILE, --check FILE, --ask COMMAND FILE, --help, or --version.
struct CommandLine {
    std::string file, ask;
    bool check = false, help = false, version = false;
};

/// An option of one program alone, with a value or without: `--name`, `--name VALUE`, `--name=VALUE`. If it is the only
/// option, FILE is not required.
struct FurtherOption {
    const char *name;
    std::function<void(const char *value)> take; ///< value: null if there is none
};

/// \param program its name, for messages
/// \param asks the commands that --ask takes
/// \throws UsageError, which refers to --help
CommandLine ParseCommandLine(int argc, char **argv, const std::string &program,
                             const std::vector<std::string> &asks, const std::vector<FurtherOption> &further = {});

/// Prints the text of --help, or "PROGRAM VERSION", on standard output, if one was asked for. \returns whether one was
bool Answered(const CommandLine &line, const std::string &program, const char *usage);

} // namespace msfrs
