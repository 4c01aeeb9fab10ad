// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The syntax of the daemons' configuration files: a line begins with a keyword. A keyword is one row of a table: its
/// name, its usage, how often it may be given, and a function that reads the rest of the line.
#pragma once

#include "config/fields.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

/// A configured value and its line.
struct Written {
    std::string value; ///< empty: none
    std::string where; ///< the line it is from; empty: not configured
};

/// The rest of a line.
struct Line {
    std::string where; ///< file and line
    std::string_view rest;
    const char *usage = ""; ///< syntax of its keyword

    /// The next word; empty at the end of the line.
    std::string_view next() { return NextWord(rest); }
    /// The next word, which is required.
    std::string_view need()
    {
        const auto word = next();
        if (word.empty())
            refuse("a value is missing; give " + std::string(usage));
        return word;
    }
    /// The rest, as fields.
    Fields fields(std::vector<const char *> names) { return Fields(where, std::move(names), rest); }
    /// Rejects further words.
    void end()
    {
        if (const auto word = next(); !word.empty())
            refuse("\"" + Shown(word) + "\": unexpected; give " + std::string(usage));
    }
    [[noreturn]] void refuse(const std::string &what) const
    {
        throw RuleError(where + ": " + Printable(what)); // a plugin's name, or a path, may be in it
    }
    /// The next word, a name of letters, digits, '-', '_' and '.'. \param what noun for the error message
    std::string name(const char *const what)
    {
        const std::string word(need());
        if (!GoodName(word))
            refuse(std::string(what) + " \"" + Shown(word) +
                   "\": a name has letters, digits, '-', '_' and '.', at most " + std::to_string(MostNameLength));
        return word;
    }
    /// Rejects an invalid path of a file. \param what prefix of the error message
    void checkPath(const std::string &what, const std::string_view path, const size_t most) const
    {
        if (path.empty() || path[0] != '/' || path.size() > most || Printable(path) != path)
            refuse(what + Shown(path) + ": must be a path that begins with '/', at most " + std::to_string(most) +
                   " characters");
    }
    /// The rest, which is the path of a file. \param what prefix of the error message
    Written path(const std::string &what, const size_t most)
    {
        Written made{std::string(need()), where};
        checkPath(what + " ", made.value, most);
        end();
        return made;
    }
    /// The rest, which is the name of a user.
    Written user()
    {
        Written made{name("user"), where};
        end();
        return made;
    }
    /// The rest, which is the name of shared memory.
    Written segment()
    {
        constexpr size_t Most = 200; // characters
        Written made{std::string(need()), where};
        checkPath("segment ", made.value, Most);
        if (made.value.size() < 2 || made.value.find('/', 1) != std::string::npos)
            refuse("segment " + Shown(made.value) + ": expected the name of shared memory, '/' and a name");
        end();
        return made;
    }
};
constexpr size_t MostSocketPath = 107; ///< characters: sun_path

/// \tparam Around further arguments for reading a line
template <class Config, class... Around>
struct Keyword {
    const char *name;
    const char *usage;
    bool repeats;
    void (*read)(Line &, Config &, const Around &...);
};

/// The syntax of the keyword of that name.
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
    std::map<const void *, size_t> seen; // line of a keyword's first occurrence
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
