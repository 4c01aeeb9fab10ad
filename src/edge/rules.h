// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Rules from a file, one a line; conf/edge/diffserv.rules describes them. After a rule that matches everything, or all
/// of an address family, a rule that can never match is rejected.
#pragma once

#include "config/fields.h"
#include "edge/match.h"
#include "edge/per_hop.h"
#include "edge/policer.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace msfrs::edge {

struct Rule {
    std::string name;
    Match match;
    std::optional<TokenRate> police;
    CodePoint mark;
};

constexpr size_t MostRules = 65536; ///< 16 blocks of the classifier; a file with more is refused

/// \throws RuleError unless the field's value is the name of a code point
CodePoint CodePointNamed(const Field &);

/// Reads a file of rules. It is untrusted; MostRules and MostLineLength bound the memory used.
/// \param file for messages
/// \throws RuleError
std::vector<Rule> ReadRules(std::istream &, const std::string &file);
/// The same from a file's path.
std::vector<Rule> ReadRules(const std::string &path);

} // namespace msfrs::edge
