// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The subset of HTTP/1.1 that the page needs: one GET, HEAD or POST per connection, without a body. Everything else,
/// and everything ambiguous, is refused.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::page {

constexpr size_t MostHead = 8192; ///< bytes of a request

/// Thrown for a request that is answered with this status and sentence.
class Refused : public std::runtime_error {
public:
    Refused(const int code, const std::string &why): std::runtime_error(why), status(code) {}
    const int status;
};

struct Request {
    bool head = false;                      ///< a HEAD request
    bool post = false;                      ///< a POST request
    bool deliberate = false;                ///< X-Msfrs-Boost, which no foreign page can have a browser send
    std::string path;                       ///< as sent
    std::optional<std::string> name;        ///< of the query, decoded: UTF-8 without control characters
    std::string languages;                  ///< Accept-Language
    std::string host;                       ///< without port, in lower case
    std::optional<std::string> credentials; ///< Authorization
};

/// Reads a request. \returns nothing if it is incomplete \throws Refused
std::optional<Request> ReadRequest(std::string_view got);

/// The host of an authority, in the form of Request::host: without port, brackets kept, in lower case. Empty: invalid.
std::string HostOf(std::string_view authority);

/// The first of the available languages ("de") that a client prefers.
/// \param accepted Accept-Language \param available not empty; the first one is for clients that accept none of them
std::string LanguageOf(std::string_view accepted, const std::vector<std::string> &available);

/// The token in Authorization: of Bearer, or the password of Basic. Empty: none.
std::string TokenOf(std::string_view credentials);
/// Whether two tokens are equal; the time it takes reveals only the length of `given`. \param wanted not empty
bool SameToken(std::string_view given, std::string_view wanted);

struct Answer {
    int status = 200;
    const char *type = "text/plain; charset=utf-8";
    std::string_view body;
    const char *cached = "no-store"; ///< Cache-Control
    const char *more = "";           ///< further header lines, each with its end
};

/// Serialises an answer. \param head without the body
std::string Write(const Answer &, bool head);

} // namespace msfrs::page
