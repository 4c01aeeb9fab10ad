// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The second file of msfrs-middlebox, which assigns functions to classes. See docs/design/middlebox.md.
#pragma once

#include "edge/daemon/config.h"
#include "satellites/middlebox/cpu_stage.h"

#include <iosfwd>
#include <string>

namespace msfrs::middlebox {

/// \param file for messages \param config of the link, the scheduler and the classes
/// \throws RuleError with file, line, the value and what is allowed
CpuConfig ReadFunctions(std::istream &, const std::string &file, const edge::Config &config);
/// The same from the path of a file.
CpuConfig ReadFunctions(const std::string &path, const edge::Config &config);

/// Refuses settings of msfrs-edge that msfrs-middlebox does not support.
/// \throws RuleError with `file`
void CheckConfig(const edge::Config &, const std::string &file);

} // namespace msfrs::middlebox
