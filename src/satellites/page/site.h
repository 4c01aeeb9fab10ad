// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The answers of the page, and access to them.
#pragma once

#include "satellites/page/http.h"

#include <functional>
#include <map>

namespace msfrs::page {

/// Access control.
struct Access {
    std::vector<std::string> hosts; ///< valid names of the page, in the form of Request::host
    std::string token;              ///< empty: none required
};

/// A static file of the page.
struct File {
    const char *type;
    std::string content;
};

/// Files by path in the URL.
using Files = std::map<std::string, File>;

/// Reads the page's files. \param directory their directory \param chart Chart.js; without it there are only tables
/// \param log receives a message if there is none
/// \throws SystemError one of our files is missing
Files ReadFiles(const std::string &directory, const std::string &chart,
                const std::function<void(const std::string &)> &log);

/// Answers that change with every poll, prepared in advance.
struct Prepared {
    std::string data, history, users; ///< JSON
    std::string trouble;       ///< reason for outdated figures; empty: they are current
    std::function<std::string(const std::string &name)> user;   ///< JSON of a user
    /// Asks for a boost of a user; none: not offered. \throws Refused
    std::function<void(const std::string &name)> boost;
    std::function<std::string(const std::string &name)> past;   ///< JSON of a user's last hour
    std::function<std::string(const std::string &address)> own; ///< JSON of the user at an address, for that user
};

/// Who may be at the other end. Users see their own page only, as their address decides, and need no token.
enum class Audience { Administrators, Users };

class Site {
public:
    /// \param files of ReadFiles(); those of other pages are left out for users
    Site(Access access, Files files, Audience = Audience::Administrators);

    /// Answers the part of a request received so far. \param peer the client's address
    /// \returns nothing if it is incomplete
    std::optional<std::string> answer(std::string_view got, const std::string &peer, const Prepared &) const;

    const Files &files() const { return files_; }

private:
    void check(const Request &) const;
    std::string answerTo(const Request &, const std::string &peer, const Prepared &) const;
    std::string boosted(const Request &, const Prepared &) const;
    /// Answers a request for JSON or text. \returns whether there is any at its path
    bool figures(const Request &, const std::string &peer, const Prepared &, Answer &, std::string &made) const;

    Access access_;
    Files files_;
    Audience audience_;
    std::vector<std::string> languages_; ///< of files_, the one for everybody else first
};

} // namespace msfrs::page
