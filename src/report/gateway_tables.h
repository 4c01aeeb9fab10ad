// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The figures of a gateway that schedules. A new one is a column there, and appears in mgr:msfrs, in
/// mgr:msfrs-metrics and in the sums over workers.
#pragma once

#include "report/table.h"

namespace msfrs::report {

enum Part { State, Link, Found, Window, Alone, Parties, Excess, Limits, Classes, Held, Users, Parts };

/// The table of a part.
const Table &TableOf(Part);

} // namespace msfrs::report
