// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The keywords of the configuration file.
#ifndef MSFRS_EDGE_DAEMON_KEYWORDS_H
#define MSFRS_EDGE_DAEMON_KEYWORDS_H

#include "edge/daemon/config.h"

namespace msfrs::edge {

/// What is left of a line.
struct Line {
    std::string where; ///< file and line
    std::string_view rest;
    const char *usage = ""; ///< how its keyword is written

    /// The next word; empty at the end of the line.
    std::string_view next() { return NextWord(rest); }
    /// The next word, which must be there.
    std::string_view need();
    /// What is left, as fields.
    Fields fields(std::vector<const char *> names);
    /// Refuses anything that is left.
    void end();
    [[noreturn]] void refuse(const std::string &what) const 
    {
        throw RuleError(where + ": " + Printable(what)); // a plugin's name, or a path, may be in it
    }
};

/// Where the configuration is read from.
struct Surroundings {
    std::string directory; ///< of the file, with '/' at its end, or empty
    std::string pluginDir;
};

struct Keyword {
    const char *name;
    const char *usage;
    bool repeats;
    void (*read)(Line &, Config &, const Surroundings &);
};

/// \returns null: there is none of that name
const Keyword *FindKeyword(std::string_view name);
/// "link, queue and flow"
std::string KeywordList();
/// What only the whole file tells: defaults, and what must fit together.
void Finish(Config &, const std::string &file, const Surroundings &);

} // namespace msfrs::edge

#endif
