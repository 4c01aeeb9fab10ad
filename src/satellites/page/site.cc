// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/site.h"

#include "daemon/descriptor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace msfrs::page {

namespace {

constexpr const char *Html = "text/html; charset=utf-8", *Script = "text/javascript; charset=utf-8",
                     *Style = "text/css; charset=utf-8", *JsonType = "application/json";
constexpr const char *Chart = "/chart.js";

constexpr const char *Fallback = "en";
constexpr const char *Words = "/lang/"; ///< path of the translations, in files LANGUAGE.json

struct OwnFile {
    const char *path, *name, *type;
    bool forUsers = false;
};
constexpr OwnFile OwnFiles[] = {
    {"/", "index.html", Html},
    {"/user", "user.html", Html},
    {"/me", "me.html", Html, true},
    {"/common.js", "common.js", Script, true},
    {"/page.js", "page.js", Script},
    {"/plots.js", "plots.js", Script},
    {"/user.js", "user.js", Script},
    {"/me.js", "me.js", Script, true},
    {"/page.css", "page.css", Style, true},
    {"/icon.svg", "icon.svg", "image/svg+xml", true},
};

std::optional<std::string> Content(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::ostringstream content;
    if (!in || !(content << in.rdbuf()))
        return {};
    return content.str();
}

std::string Needed(const std::string &path)
{
    auto content = Content(path);
    if (!content)
        throw SystemError(path + ": cannot be read; it is installed with msfrs-page");
    return std::move(*content);
}

bool IsLanguage(const std::string &name)
{
    return name.size() >= 2 && name.size() <= 8 &&
        std::all_of(name.begin(), name.end(), [](const char c) { return c >= 'a' && c <= 'z'; });
}

} // namespace

Files ReadFiles(const std::string &directory, const std::string &chart,
                const std::function<void(const std::string &)> &log)
{
    Files files;
    for (const auto &own : OwnFiles)
        files[own.path] = {own.type, Needed(directory + "/" + own.name)};
    const auto words = directory + Words;
    files[std::string(Words) + Fallback] = {JsonType, Needed(words + Fallback + ".json")};
    std::error_code none;
    for (const auto &file : std::filesystem::directory_iterator(words, none)) {
        const auto language = file.path().stem().string();
        if (file.path().extension() == ".json" && IsLanguage(language))
            files[Words + language] = {JsonType, Needed(file.path())};
    }
    auto library = Content(chart);
    if (!library)
        log(chart + ": cannot be read, so there are tables without plots (Debian: apt install libjs-chart.js)");
    files[Chart] = {Script, library ? std::move(*library) : "// Chart.js is not installed.\n"};
    return files;
}

Site::Site(Access access, Files files, const Audience audience):
    access_(std::move(access)), files_(std::move(files)), audience_(audience)
{
    const std::string words = Words;
    languages_ = {Fallback};
    for (const auto &[path, _] : files_) {
        if (path.compare(0, words.size(), words) == 0 && path != words + Fallback)
            languages_.push_back(path.substr(words.size()));
    }
    if (audience_ == Audience::Administrators)
        return;
    access_.token.clear();
    for (const auto &own : OwnFiles) {
        if (!own.forUsers)
            files_.erase(own.path);
    }
    files_.erase(Chart);
    if (const auto own = files_.find("/me"); own != files_.end())
        files_["/"] = own->second; // so that the name alone is enough
}

void Site::check(const Request &request) const
{
    // Not one of our names, although it leads here: a foreign page in the browser of one of our users (DNS rebinding).
    if (std::find(access_.hosts.begin(), access_.hosts.end(), request.host) == access_.hosts.end())
        throw Refused(421, "Unknown host name; a line `host NAME` in the configuration of msfrs-page allows it.");
    if (request.path == "/healthz" || access_.token.empty())
        return;
    if (!SameToken(TokenOf(request.credentials.value_or("")), access_.token))
        throw Refused(401, "A token is required, as the password of any user name.");
}

/// The only request that changes anything. The token has been checked; the header keeps a page of another site from
/// sending it with the credentials that the browser has stored.
std::string Site::boosted(const Request &request, const Prepared &now) const
{
    if (request.path != "/boost" || !now.boost || audience_ == Audience::Users || access_.token.empty())
        throw Refused(405, "This page can only be read: GET and HEAD.");
    if (!request.deliberate)
        throw Refused(403, "A request for a boost needs the header X-Msfrs-Boost.");
    if (!request.name)
        throw Refused(400, "The name is missing: /boost?name=NAME");
    now.boost(*request.name);
    return "asked\n";
}

bool Site::figures(const Request &request, const std::string &peer, const Prepared &now, Answer &answer,
                   std::string &made) const
{
    const auto &path = request.path;
    answer.type = JsonType;
    if (path == "/me.json") {
        made = now.own(peer); // the connection's address; no header is believed
        answer.body = made;
        return true;
    }
    if (audience_ == Audience::Users)
        return false;
    if (path == "/data.json" || path == "/history.json" || path == "/users.json") {
        answer.body = path == "/data.json" ? now.data : path == "/history.json" ? now.history : now.users;
        return true;
    }
    if (path == "/user.json" || path == "/past.json") {
        if (!request.name)
            throw Refused(400, "The name is missing: " + path + "?name=NAME");
        made = path == "/user.json" ? now.user(*request.name) : now.past(*request.name);
    } else if (path == "/healthz") {
        answer.type = Answer().type;
        made = now.trouble.empty() ? "ok\n" : "Squid's figures are outdated\n";
        answer.status = now.trouble.empty() ? 200 : 503;
    } else {
        return false;
    }
    answer.body = made;
    return true;
}

std::string Site::answerTo(const Request &request, const std::string &peer, const Prepared &now) const
{
    check(request);
    const auto &path = request.path;
    if (request.name && path != "/user" && path != "/user.json" && path != "/past.json" && path != "/boost")
        throw Refused(400, "This path takes no query.");
    Answer answer;
    std::string made;
    if (request.post) {
        made = boosted(request, now);
        answer.status = 202;
        answer.body = made;
        return Write(answer, false);
    }
    const bool words = path == "/words.json";
    const auto file = files_.find(words ? Words + LanguageOf(request.languages, languages_) : path);
    if (file != files_.end()) {
        answer.type = file->second.type;
        answer.body = file->second.content;
        answer.cached = "private, max-age=60";
        answer.more = words ? "Vary: Accept-Language\r\n" : "";
    } else if (!figures(request, peer, now, answer, made)) {
        throw Refused(404, "There is no such page.");
    }
    return Write(answer, request.head);
}

std::optional<std::string> Site::answer(const std::string_view got, const std::string &peer,
                                        const Prepared &now) const
{
    try {
        const auto request = ReadRequest(got);
        return request ? std::optional(answerTo(*request, peer, now)) : std::nullopt;
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
