// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The options of msfrs-syn: those of msfrs-iptables that concern it, in the same file.
#pragma once

#include "config/keywords.h"
#include "syn/gate.h"

#include <istream>
#include <optional>
#include <string>

namespace msfrs::syn {

struct Config {
    std::optional<uint32_t> queue = 100; ///< number of the NFQUEUE; nothing: none
    MarkBits bits;
    bool transparent = false; ///< mode = tproxy
    Written user{"proxy", {}};
};

/// Reads mode, syn-queue, syn-mark and squid-user of lines `option = value`; msfrs-iptables checks the others.
/// \param file for messages \throws RuleError
Config ReadConfig(std::istream &, const std::string &file);
/// The same from a file's path.
Config ReadConfig(const std::string &path);

} // namespace msfrs::syn
