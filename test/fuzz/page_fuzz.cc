// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The inputs of msfrs-page: requests of browsers, pages of Squid's manager, names, its saved history. The first byte selects
/// one. Each is read or refused, and the page's output is UTF-8 without characters that could end a string or a line.
#include "satellites/page/figures.h"
#include "satellites/page/http.h"
#include "satellites/page/json.h"
#include "satellites/page/utf8.h"
#include "require.h"

#include <sstream>

namespace {

using namespace msfrs::page;

void RequireHarmless(const std::string &json)
{
    Require(IsUtf8(json) && json.find_first_of("<>&'\n\r") == json.npos);
}

void FuzzRequest(const std::string_view text)
{
    try {
        const auto request = ReadRequest(text);
        if (!request)
            return;
        Require(request->path[0] == '/' && !request->host.empty() && request->host == HostOf(request->host));
        if (request->name)
            Require(IsUtf8(*request->name) && !request->name->empty());
        LanguageOf(request->languages, {"en", "de"});
        TokenOf(request->credentials.value_or(""));
    } catch (const Refused &refused) {
        Require(refused.status >= 400 && refused.status < 600);
    }
}

void FuzzPages(const std::string_view text)
{
    Figures figures;
    // The parts before and after a 0 are two polls.
    const auto half = text.find('\0');
    try {
        figures.takeMetrics(text.substr(0, half), 1, 1000);
        figures.takeMetrics(half == text.npos ? text : text.substr(half + 1), 2, 1005);
    } catch (const PageError &) {
    }
    try {
        figures.takeReport(text);
        figures.takeUsers(text, 3, 1005);
    } catch (const PageError &) {
    }
    RequireHarmless(figures.dataJson(1005, 1, ""));
    RequireHarmless(figures.history().json());
    RequireHarmless(figures.usersJson());
    RequireHarmless(figures.pastJson(std::string(text.substr(0, 3))));
    RequireHarmless(figures.ownJson(std::string(text.substr(0, 3)), ""));
    RequireHarmless(figures.userJson(std::string(text.substr(0, 3)), ""));
}

void FuzzNames(const std::string_view text)
{
    NameBook book;
    book.addNames(text);
    book.addLeases(text);
    for (const auto *const user : {"10.0.0.5", "aa:bb:cc:00:11:22", "a", ""}) {
        const auto name = book.of(user);
        Require(name.size() <= NameBook::MostLength && IsUtf8(name));
        RequireHarmless(JsonString(name + book.hardwareOf(user)));
    }
}

void FuzzHistory(const std::string_view text)
{
    History history({10, 4, 3});
    std::istringstream in{std::string(text)};
    try {
        history.load(in, 1029);
    } catch (const std::runtime_error &) {
        Require(history.columns() == 0);
        return;
    }
    Require(history.columns() <= 3);
    const auto json = history.json();
    RequireHarmless(json);
    std::stringstream saved;
    history.save(saved);
    History again({10, 4, 3});
    again.load(saved, 1029);
    Require(again.json() == json);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    if (size == 0)
        return 0;
    const std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
    if (data[0] == 'r')
        FuzzRequest(text);
    else if (data[0] == 'n')
        FuzzNames(text);
    else if (data[0] == 'h')
        FuzzHistory(text);
    else
        FuzzPages(text);
    return 0;
}
