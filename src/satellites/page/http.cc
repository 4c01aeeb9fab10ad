// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/http.h"

#include "satellites/page/ascii.h"
#include "satellites/page/utf8.h"

#include <algorithm>
#include <charconv>

namespace msfrs::page {

namespace {

bool Same(const std::string_view a, const std::string_view lower)
{
    return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                      [](const char x, const char y) { return Lower(x) == y; });
}

/// Removes and returns the text up to `end`, which is removed too; the whole rest if there is no `end`.
std::string_view Front(std::string_view &rest, const std::string_view end)
{
    const auto at = rest.find(end);
    const auto front = rest.substr(0, at);
    rest.remove_prefix(at == rest.npos ? rest.size() : at + end.size());
    return front;
}

/// The name in the query "name=...", the only form allowed.
std::string NameOf(std::string_view query)
{
    constexpr size_t MostName = 256;
    if (Front(query, "=") != "name" || query.find_first_of("&=") != query.npos)
        throw Refused(400, "The only query is name=.");
    std::string form(query);
    std::replace(form.begin(), form.end(), '+', ' '); // encoding of forms
    const auto decoded = PercentDecoded(form);
    if (!decoded)
        throw Refused(400, "A % in the address is not followed by two hexadecimal digits.");
    const auto &name = *decoded;
    if (name.empty() || name.size() > MostName)
        throw Refused(400, "A name has 1 to " + std::to_string(MostName) + " bytes.");
    if (std::any_of(name.begin(), name.end(), IsControl) || !IsUtf8(name))
        throw Refused(400, "A name is UTF-8 without control characters.");
    return name;
}

void ReadTarget(std::string_view target, Request &request)
{
    const bool shown = std::all_of(target.begin(), target.end(), [](const char c) { return c > ' ' && c <= '~'; });
    if (!shown || target.substr(0, 1) != "/")
        throw Refused(400, "The address of a page begins with /.");
    const bool query = target.find('?') != target.npos;
    request.path = Front(target, "?");
    if (query)
        request.name = NameOf(target);
}

void ReadFirstLine(std::string_view line, Request &request)
{
    const auto method = Front(line, " "), target = Front(line, " ");
    if (line != "HTTP/1.1" && line != "HTTP/1.0")
        throw Refused(line.substr(0, 5) == "HTTP/" ? 505 : 400, "Expected HTTP/1.1.");
    request.head = method == "HEAD";
    request.post = method == "POST";
    if (method != "GET" && !request.head && !request.post)
        throw Refused(405, "This page can only be read: GET and HEAD.");
    ReadTarget(target, request);
}

void ReadField(std::string_view line, Request &request)
{
    constexpr std::string_view NotInNames = " \t\"(),/:;<=>?@[\\]{}";
    const bool colon = line.find(':') != line.npos;
    const auto name = Front(line, ":");
    const auto value = Trimmed(line);
    if (!colon || name.empty() || name.find_first_of(NotInNames) != name.npos)
        throw Refused(400, "A header line is invalid.");
    if (std::any_of(value.begin(), value.end(), [](const char c) { return IsControl(c) && c != '\t'; }))
        throw Refused(400, "A header has control characters.");
    if (Same(name, "host")) {
        if (!request.host.empty())
            throw Refused(400, "There are two Host headers.");
        request.host = HostOf(value);
        if (request.host.empty())
            throw Refused(400, "The Host header is invalid.");
    } else if (Same(name, "authorization")) {
        if (request.credentials)
            throw Refused(400, "There are two Authorization headers.");
        request.credentials = value;
    } else if (Same(name, "accept-language")) {
        request.languages = value;
    } else if (Same(name, "x-msfrs-boost")) {
        request.deliberate = true;
    } else if (Same(name, "transfer-encoding") || (Same(name, "content-length") && value != "0")) {
        throw Refused(413, "A request has no body here.");
    }
}

} // namespace

std::string HostOf(const std::string_view authority)
{
    const auto bracket = authority.find(']');
    const auto colon = authority.find(':', authority.substr(0, 1) == "[" && bracket != authority.npos ? bracket : 0);
    const auto port = colon == authority.npos ? "" : authority.substr(colon + 1);
    const auto host = authority.substr(0, colon);
    const bool v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const auto inner = v6 ? host.substr(1, host.size() - 2) : host;
    const bool good = !inner.empty() && host.size() <= 255 && port.size() <= 5 &&
        std::all_of(inner.begin(), inner.end(), [&](const char c) { return IsOfNames(c) || (v6 && c == ':'); }) &&
        std::all_of(port.begin(), port.end(), IsDigit);
    return good ? Lower(std::string(host)) : "";
}

std::optional<Request> ReadRequest(const std::string_view got)
{
    const auto end = got.find("\r\n\r\n");
    if (end == got.npos && got.size() < MostHead)
        return {};
    if (end == got.npos || end > MostHead)
        throw Refused(431, "A request has at most " + std::to_string(MostHead) + " bytes.");
    auto rest = got.substr(0, end);
    if (rest.find('\0') != rest.npos)
        throw Refused(400, "The request contains a NUL byte.");
    Request request;
    ReadFirstLine(Front(rest, "\r\n"), request);
    while (!rest.empty())
        ReadField(Front(rest, "\r\n"), request);
    if (request.host.empty())
        throw Refused(400, "The Host header is missing.");
    return request;
}

std::string LanguageOf(std::string_view accepted, const std::vector<std::string> &available)
{
    auto best = available.front();
    double most = 0;
    while (!accepted.empty()) {
        auto range = Front(accepted, ",");
        const auto tag = Trimmed(Front(range, ";"));
        const auto primary = tag.substr(0, tag.find('-'));
        range = Trimmed(range);
        double quality = range.empty() ? 1 : 0;
        if (range.substr(0, 2) == "q=")
            std::from_chars(range.data() + 2, range.data() + range.size(), quality);
        for (const auto &language : available) {
            if (quality > most && Same(primary, language)) {
                best = language;
                most = quality;
            }
        }
    }
    return best;
}

std::string TokenOf(std::string_view credentials)
{
    const auto scheme = Front(credentials, " ");
    credentials = Trimmed(credentials);
    if (Same(scheme, "bearer"))
        return std::string(credentials);
    if (!Same(scheme, "basic"))
        return {};
    constexpr std::string_view Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string decoded;
    unsigned bits = 0, count = 0;
    for (const char c : credentials) {
        const auto digit = Digits.find(c);
        if (digit == Digits.npos) {
            if (c == '=')
                break;
            return {};
        }
        bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xFFFF;
        count += 6;
        if (count >= 8)
            decoded += static_cast<char>(bits >> (count -= 8));
    }
    const auto colon = decoded.find(':');
    return colon == decoded.npos ? "" : decoded.substr(colon + 1);
}

bool SameToken(const std::string_view given, const std::string_view wanted)
{
    volatile unsigned char differs = given.size() != wanted.size();
    for (size_t n = 0; n < given.size(); ++n)
        differs = differs | static_cast<unsigned char>(given[n] ^ wanted[n % wanted.size()]);
    return differs == 0;
}

namespace {

const char *Reason(const int status)
{
    switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

} // namespace

std::string Write(const Answer &answer, const bool head)
{
    std::string text = "HTTP/1.1 " + std::to_string(answer.status) + ' ' + Reason(answer.status) +
        "\r\nConnection: close\r\nContent-Length: " + std::to_string(answer.body.size()) +
        "\r\nContent-Type: " + answer.type + "\r\nCache-Control: " + answer.cached + "\r\n" + answer.more +
        // Only our own files, even if foreign text gets into a page; and no framing by other pages.
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\n\r\n";
    if (!head)
        text += answer.body;
    return text;
}

} // namespace msfrs::page
