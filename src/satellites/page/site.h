// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What the page answers to whom.
#ifndef MSFRS_PAGE_SITE_H
#define MSFRS_PAGE_SITE_H

#include "satellites/page/http.h"

#include <functional>
#include <map>
#include <memory>

namespace msfrs::page {

/// Who may ask.
struct Access {
    std::vector<std::string> hosts; ///< by which the page may be called, as Request::host has them
    std::string token;              ///< empty: none is needed
};

/// A file of the page that is sent as it is.
struct File {
    const char *type;
    std::string content;
};

/// By the path at which it is asked for.
using Files = std::map<std::string, File>;

/// The page's own files. \param directory where they are \param chart Chart.js; without it there are tables alone
/// \param log told if there is none
/// \throws SystemError a file of ours is missing
Files ReadFiles(const std::string &directory, const std::string &chart,
                const std::function<void(const std::string &)> &log);

/// What changes with every poll, written before anybody asks.
struct Prepared {
    std::string data, history; ///< JSON
    std::string trouble;       ///< why Squid's figures are not new; empty: they are
    std::function<std::string(const std::string &name)> user; ///< JSON of a user
};

class Site {
public:
    Site(Access access, Files files): access_(std::move(access)), files_(std::move(files)) {}

    /// Answers to what has come of a request. \returns nothing: there is more to come
    std::optional<std::string> answer(std::string_view got, const Prepared &) const;

private:
    void check(const Request &) const;
    std::string answerTo(const Request &, const Prepared &) const;

    Access access_;
    Files files_;
};

} // namespace msfrs::page

#endif
