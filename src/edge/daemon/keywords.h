// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The keywords of the configuration file.
#pragma once

#include "config/keywords.h"
#include "edge/daemon/config.h"

namespace msfrs::edge {

/// The context of a configuration file.
struct Surroundings {
    std::string directory; ///< of the file, with '/' at its end, or empty
    std::string pluginDir;
};

/// Reads all lines. \throws RuleError
void ReadLines(std::istream &, const std::string &file, Config &, const Surroundings &);
/// Steps that need the whole file: defaults and consistency checks.
void Finish(Config &, const std::string &file, const Surroundings &);

} // namespace msfrs::edge
