// SPDX-License-Identifier: GPL-2.0-or-later
#include "squid.h"

#include <algorithm>
#include <cstring>
#include <string>

const char *cfg_directive = "msfrs_test", *cfg_filename = "squid.conf";
int config_lineno = 1;
char config_input_line[BUFSIZE] = {};

bool ConfigParser::StrictMode = false;

namespace {

std::string Line, Word;
size_t At = 0;

/// The next word in Word, without taking it. \returns whether there is one
bool Next()
{
    At = std::min(Line.find_first_not_of(" \t", At), Line.size());
    Word = Line.substr(At, Line.find_first_of(" \t", At) - At);
    return !Word.empty();
}

} // namespace

void ConfigParser::Begin(const char *const line)
{
    Line = line;
    At = 0;
}

const char *ConfigParser::PeekAtToken()
{
    return Next() ? Word.c_str() : nullptr;
}

char *ConfigParser::NextToken()
{
    if (!Next())
        return nullptr;
    At += Word.size();
    return Word.data();
}

bool ConfigParser::NextKvPair(char *&name, char *&value)
{
    name = NextToken();
    const auto middle = name ? std::strchr(name, '=') : nullptr;
    if (!middle)
        return false;
    *middle = '\0';
    value = middle + 1;
    return true;
}
