// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The keywords of the configuration file that are about the processor as a resource.
#ifndef MSFRS_EDGE_DAEMON_FUNCTION_KEYWORDS_H
#define MSFRS_EDGE_DAEMON_FUNCTION_KEYWORDS_H

#include "edge/daemon/keywords.h"

namespace msfrs::edge {

void ReadCpu(Line &, Config &, const Surroundings &);
void ReadFunction(Line &, Config &, const Surroundings &);
/// The function that a field names; it was declared before.
size_t FunctionOf(const Field &, const Config &);
/// What only the whole file tells. \throws RuleError
void CheckFunctions(const Config &, const std::string &file);

} // namespace msfrs::edge

#endif
