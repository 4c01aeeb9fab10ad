// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/site.h"

#include "daemon/descriptor.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace msfrs::page {

namespace {

constexpr const char *Html = "text/html; charset=utf-8", *Script = "text/javascript; charset=utf-8",
                     *Style = "text/css; charset=utf-8", *JsonType = "application/json";
constexpr const char *Chart = "/chart.js";

struct OwnFile {
    const char *path, *name, *type;
};
constexpr OwnFile OwnFiles[] = {
    {"/", "index.html", Html},          {"/user", "user.html", Html},      {"/common.js", "common.js", Script},
    {"/page.js", "page.js", Script},    {"/plots.js", "plots.js", Script}, {"/user.js", "user.js", Script},
    {"/page.css", "page.css", Style},   {"/icon.svg", "icon.svg", "image/svg+xml"},
};

std::optional<std::string> Content(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::ostringstream content;
    if (!in || !(content << in.rdbuf()))
        return {};
    return content.str();
}

} // namespace

Files ReadFiles(const std::string &directory, const std::string &chart,
                const std::function<void(const std::string &)> &log)
{
    Files files;
    for (const auto &own : OwnFiles) {
        const auto path = directory + "/" + own.name;
        auto content = Content(path);
        if (!content)
            throw SystemError(path + ": cannot be read; it is installed with msfrs-page");
        files[own.path] = {own.type, std::move(*content)};
    }
    auto library = Content(chart);
    if (!library)
        log(chart + ": cannot be read, so there are tables without plots (Debian: apt install libjs-chart.js)");
    files[Chart] = {Script, library ? std::move(*library) : "// Chart.js is not installed.\n"};
    return files;
}

void Site::check(const Request &request) const
{
    // Not one of our names, although it leads here: a foreign page in the browser of one of our users (DNS rebinding).
    if (std::find(access_.hosts.begin(), access_.hosts.end(), request.host) == access_.hosts.end())
        throw Refused(421, "This page is not called by that name; a line `host NAME` in its configuration allows it.");
    if (request.path == "/healthz" || access_.token.empty())
        return;
    if (!SameToken(TokenOf(request.credentials.value_or("")), access_.token))
        throw Refused(401, "A token is wanted, as the password of any user name.");
}

std::string Site::answerTo(const Request &request, const Prepared &now) const
{
    check(request);
    if (request.name && request.path != "/user" && request.path != "/user.json")
        throw Refused(400, "This address has no query.");
    Answer answer;
    std::string made;
    if (const auto file = files_.find(request.path); file != files_.end()) {
        answer.type = file->second.type;
        answer.body = file->second.content;
        answer.cached = "private, max-age=60";
    } else if (request.path == "/data.json" || request.path == "/history.json") {
        answer.type = JsonType;
        answer.body = request.path == "/data.json" ? now.data : now.history;
    } else if (request.path == "/user.json") {
        if (!request.name)
            throw Refused(400, "The name is missing: /user.json?name=NAME");
        answer.type = JsonType;
        made = now.user(*request.name);
        answer.body = made;
    } else if (request.path == "/healthz") {
        made = now.trouble.empty() ? "ok\n" : "Squid's figures are old\n";
        answer.status = now.trouble.empty() ? 200 : 503;
        answer.body = made;
    } else {
        throw Refused(404, "There is no such page.");
    }
    return Write(answer, request.head);
}

std::optional<std::string> Site::answer(const std::string_view got, const Prepared &now) const
{
    try {
        const auto request = ReadRequest(got);
        return request ? std::optional(answerTo(*request, now)) : std::nullopt;
    } catch (const Refused &refused) {
        const auto text = refused.what() + std::string("\n");
        Answer answer;
        answer.status = refused.status;
        answer.body = text;
        answer.more = refused.status == 401 ? "WWW-Authenticate: Basic realm=\"msfrs\", charset=\"UTF-8\"\r\n"
            : refused.status == 405         ? "Allow: GET, HEAD\r\n"
                                            : "";
        return Write(answer, false);
    } catch (const std::exception &) {
        return Write({500, "text/plain; charset=utf-8", "This failed.\n"}, false);
    }
}

} // namespace msfrs::page
