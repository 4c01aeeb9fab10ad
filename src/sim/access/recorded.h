// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Replays the requests recorded in a field trial.
#pragma once

#include "sim/access/workload.h"

namespace msfrs::sim::access {

/// Reads requests.csv of a cell: users are called CLASS-NUMBER and servers sNUMBER.test there, both from 1.
/// \param classes names, in order \param users number in each \param servers number of servers
/// \throws ConfigError with file and line
std::vector<Arrival> ReadRecorded(const std::string &path, const std::vector<std::string> &classes,
                                  const std::vector<uint32_t> &users, uint32_t servers);

} // namespace msfrs::sim::access
