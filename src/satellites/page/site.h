// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The answers of the page, and access to them.
#ifndef MSFRS_PAGE_SITE_H
#define MSFRS_PAGE_SITE_H

#include "satellites/page/http.h"

#include <functional>
#include <map>
#include <memory>

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
    std::string data, history; ///< JSON
    std::string trouble;       ///< reason for outdated figures; empty: they are current
    std::function<std::string(const std::string &name)> user; ///< JSON of a user
};

class Site {
public:
    Site(Access access, Files files): access_(std::move(access)), files_(std::move(files)) {}

    /// Answers the part of a request received so far. \returns nothing if it is incomplete
    std::optional<std::string> answer(std::string_view got, const Prepared &) const;

private:
    void check(const Request &) const;
    std::string answerTo(const Request &, const Prepared &) const;

    Access access_;
    Files files_;
};

} // namespace msfrs::page

#endif
