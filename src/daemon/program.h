// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Exit codes of the programs.
#pragma once

#include "config/fields.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace msfrs {

/// The command line is invalid.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Runs a program, and prints an exception on standard error.
/// \returns its exit code: what run() returned, 2 after UsageError and RuleError, 1 after anything else
template <class Run>
int ExitCodeOf(const char *const name, const Run &run)
{
    const auto fail = [name](const std::exception &error, const int code) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return code;
    };
    std::signal(SIGPIPE, SIG_IGN); // a client that disconnects ends its connection, not the program
    try {
        return run();
    } catch (const UsageError &error) {
        return fail(error, 2);
    } catch (const RuleError &error) {
        return fail(error, 2);
    } catch (const std::exception &error) {
        return fail(error, 1);
    }
}

} // namespace msfrs
