// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The command line that our daemons have in common.
#ifndef MSFRS_DAEMON_COMMAND_LINE_H
#define MSFRS_DAEMON_COMMAND_LINE_H

#include <functional>
#include <string>
#include <vector>

namespace msfrs {

/// FILE, --check FILE, --ask COMMAND FILE, --help, or --version.
struct CommandLine {
    std::string file, ask;
    bool check = false, help = false, version = false;
};

/// An option of one program alone, with a value or without: `--name`, `--name VALUE`, `--name=VALUE`. Where it is all
/// that is given, no FILE is wanted.
struct FurtherOption {
    const char *name;
    std::function<void(const char *value)> take; ///< value: null where there is none
};

/// \param program its name, for messages
/// \throws UsageError, which refers to --help
CommandLine ParseCommandLine(int argc, char **argv, const std::string &program,
                             const std::vector<FurtherOption> &further = {});

/// "PROGRAM VERSION\n", the version that configure.ac has.
std::string VersionLine(const std::string &program);

/// Prints on standard output what --help or --version wants, if one of them was given; whether it was.
bool Answered(const CommandLine &line, const std::string &program, const char *usage);

} // namespace msfrs

#endif
