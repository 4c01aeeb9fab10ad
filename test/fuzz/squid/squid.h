// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What parsers of `squid-patches/files/src/msfrs` take from Squid, so that they can be fuzzed without it. The headers
/// beside this one, by the names of Squid's, lead here. squid_stubs.cc defines the functions and variables.
#pragma once

#include <cctype>
#include <cstdio>
#include <iostream>

#define xisspace(c) isspace(static_cast<unsigned char>(c))
#define xisdigit(c) isdigit(static_cast<unsigned char>(c))
#define xisalnum(c) isalnum(static_cast<unsigned char>(c))
#define DBG_IMPORTANT 1
#define DBG_PARSE_NOTE(level) (level)
#define debugs(section, level, content) ((void)(std::ostream(nullptr) << content))

constexpr int BUFSIZE = 4096; ///< bytes of config_input_line
extern const char *cfg_directive, *cfg_filename;
extern int config_lineno;
extern char config_input_line[BUFSIZE];

inline void xstrncpy(char *const to, const char *const from, const size_t size) { std::snprintf(to, size, "%s", from); }

/// The words of a line, one after the other.
class ConfigParser {
public:
    static bool StrictMode;
    static void Begin(const char *line);
    static const char *PeekAtToken();
    static char *NextToken();
    static bool NextKvPair(char *&name, char *&value);
};
