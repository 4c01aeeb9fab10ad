// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// As much of HTTP/1.1 as a page that is only read needs: one GET or HEAD a connection, nothing in its body. What is
/// more, or can be read in two ways, is refused.
#ifndef MSFRS_PAGE_HTTP_H
#define MSFRS_PAGE_HTTP_H

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::page {

constexpr size_t MostHead = 8192; ///< bytes of a request

/// A request that is answered with this status and sentence.
class Refused : public std::runtime_error {
public:
    Refused(const int code, const std::string &why): std::runtime_error(why), status(code) {}
    const int status;
};

struct Request {
    bool head = false;                      ///< the answer's head alone is wanted
    std::string path;                       ///< as it was sent
    std::optional<std::string> name;        ///< of the query, decoded: UTF-8 without control characters
    std::string host;                       ///< without port, in lower case
    std::optional<std::string> credentials; ///< Authorization
};

/// Reads a request. \returns nothing: there is more to come \throws Refused
std::optional<Request> ReadRequest(std::string_view got);

/// A host of an address, as Request::host has it: without port, brackets kept, in lower case. Empty: it is none.
std::string HostOf(std::string_view authority);

/// The token that Authorization brings: of Bearer, or the password of Basic. Empty: none.
std::string TokenOf(std::string_view credentials);
/// Whether two tokens are the same; how long it takes tells only how long `given` is. \param wanted not empty
bool SameToken(std::string_view given, std::string_view wanted);

struct Answer {
    int status = 200;
    const char *type = "text/plain; charset=utf-8";
    std::string_view body;
    const char *cached = "no-store"; ///< Cache-Control
    const char *more = "";           ///< further header lines, each with its end
};

/// The bytes of an answer. \param head without the body
std::string Write(const Answer &, bool head);

} // namespace msfrs::page

#endif
