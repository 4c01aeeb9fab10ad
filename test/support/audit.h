// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The invariants of an engine, and of a scheduler of requests, recounted from scratch.
#pragma once

#include <string>

namespace msfrs {

class Engine;
class RequestScheduler;

/// \returns an empty string, or the first invariant that does not hold
std::string AuditLaws(const Engine &);
/// The same, and those of W, and of the early, paused and idle requests of each class.
std::string AuditLaws(const RequestScheduler &);

} // namespace msfrs
