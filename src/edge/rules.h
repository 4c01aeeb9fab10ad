// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Rules from a file.
///
/// One rule per line, the first that matches applies; `#` begins a comment:
///
///     NAME [from=ADDRESSES] [to=ADDRESSES] [protocol=PROTOCOL] [from-port=PORTS] [to-port=PORTS]
///          [rate=RATE depth=SIZE] mark=CODEPOINT
///
///     NAME        letters, digits, '-', '_' and '.', at most 32, unique
///     ADDRESSES   any, ADDRESS, ADDRESS/LENGTH, FIRST-LAST; IPv4 or IPv6
///     PROTOCOL    any, a name (tcp, udp, ...) or a number 0 to 255
///     PORTS       any, PORT, FIRST-LAST; a packet without ports matches `any` alone
///     RATE        with unit bit, kbit, Mbit or Gbit (powers of 1000) a second
///     SIZE        with unit B, KB or MB (powers of 1024): the token bucket's depth
///     CODEPOINT   ef, af11 to af43, be
///
/// An omitted field is `any`; without rate and depth a rule is not policed. After a rule that matches everything, or
/// all of an address family, a rule that can never match is rejected.
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

constexpr size_t MostRules = 65536; ///< 16 blocks of the classifier

/// \throws RuleError unless the field's value is the name of a code point
CodePoint CodePointNamed(const Field &);

/// Reads a file of rules. It is untrusted; MostRules and MostLineLength bound the memory used.
/// \param file for messages
/// \throws RuleError
std::vector<Rule> ReadRules(std::istream &, const std::string &file);
/// The same from a file's path.
std::vector<Rule> ReadRules(const std::string &path);

} // namespace msfrs::edge
