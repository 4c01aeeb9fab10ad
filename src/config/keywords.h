// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The notation of the daemons' configuration files: a line begins with a keyword. A keyword is one row of a table: its
/// name, how it is written, how often it may be given, and a function that reads the rest of the line.
#ifndef MSFRS_CONFIG_KEYWORDS_H
#define MSFRS_CONFIG_KEYWORDS_H

#include "config/fields.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

/// What is left of a line.
struct Line {
    std::string where; ///< file and line
    std::string_view rest;
    const char *usage = ""; ///< how its keyword is written

    /// The next word; empty at the end of the line.
    std::string_view next() { return NextWord(rest); }
    /// The next word, which must be there.
    std::string_view need()
    {
        const auto word = next();
        if (word.empty())
            refuse("something is missing; wanted is: " + std::string(usage));
        return word;
    }
    /// What is left, as fields.
    Fields fields(std::vector<const char *> names) { return Fields(where, std::move(names), rest); }
    /// Refuses anything that is left.
    void end()
    {
        if (const auto word = next(); !word.empty())
            refuse("\"" + Shown(word) + "\" is too much; wanted is: " + std::string(usage));
    }
    [[noreturn]] void refuse(const std::string &what) const
    {
        throw RuleError(where + ": " + Printable(what)); // a plugin's name, or a path, may be in it
    }
    /// The next word, a name of letters, digits, '-', '_' and '.'. \param what it is, for the refusal
    std::string name(const char *const what)
    {
        const std::string word(need());
        if (!GoodName(word))
            refuse(std::string(what) + " \"" + Shown(word) +
                   "\": a name has letters, digits, '-', '_' and '.', at most " + std::to_string(MostNameLength));
        return word;
    }
    /// Refuses what cannot be the path of a file. \param what it is for, and what goes before it
    void checkPath(const std::string &what, const std::string_view path, const size_t most) const
    {
        if (path.empty() || path[0] != '/' || path.size() > most || Printable(path) != path)
            refuse(what + Shown(path) + ": wanted is a path from '/' on of at most " + std::to_string(most) +
                   " characters");
    }
    /// The rest, the name of shared memory.
    std::string segment()
    {
        constexpr size_t Most = 200;
        const std::string name(need());
        checkPath("segment ", name, Most);
        if (name.size() < 2 || name.find('/', 1) != name.npos)
            refuse("segment " + Shown(name) + ": wanted is the name of shared memory, '/' and a name");
        end();
        return name;
    }
};
constexpr size_t MostSocketPath = 107; ///< characters: sun_path

/// \tparam Around what else a line is read with
template <class Config, class... Around>
struct Keyword {
    const char *name;
    const char *usage;
    bool repeats;
    void (*read)(Line &, Config &, const Around &...);
};

/// How the keyword of that name is written.
template <class Row, size_t N>
const char *UsageOf(const Row (&keywords)[N], const std::string_view name)
{
    return std::find_if(std::begin(keywords), std::end(keywords), [&](const Row &k) { return name == k.name; })->usage;
}

/// Reads a file into a Config. \param file for messages \throws RuleError
template <class Config, class... Around, size_t N>
void ReadKeywords(std::istream &in, const std::string &file, const Keyword<Config, Around...> (&keywords)[N],
                  Config &config, const Around &...around)
{
    std::map<const void *, size_t> seen; // the line where a keyword was first
    Lines lines(in, file);
    for (std::string_view text; lines.next(text);) {
        Line line{lines.where(), text};
        const auto word = line.next();
        const auto *const keyword =
            std::find_if(std::begin(keywords), std::end(keywords), [&](const auto &k) { return word == k.name; });
        if (keyword == std::end(keywords)) {
            std::vector<const char *> names;
            for (const auto &k : keywords)
                names.push_back(k.name);
            line.refuse("\"" + Shown(word) + "\": unknown; a line begins with " + Listed(names));
        }
        line.usage = keyword->usage;
        const auto [first, fresh] = seen.emplace(keyword, lines.number());
        if (!fresh && !keyword->repeats)
            line.refuse("\"" + std::string(word) + "\": line " + std::to_string(first->second) + " has it already");
        keyword->read(line, config, around...);
    }
}

} // namespace msfrs

#endif
