// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Client of Squid's cache manager.
#pragma once

#include "satellites/page/config.h"

#include <event2/event.h>
#include <functional>
#include <memory>

struct evhttp_connection;

namespace msfrs::page {

/// The result of a request: the page, or the reason for its absence.
struct ManagerPage {
    int status = 0;    ///< of HTTP; 0: no answer
    std::string text;  ///< the page if the status is 200
    std::string why;   ///< otherwise a sentence
};

class ManagerClient {
public:
    using Done = std::function<void(ManagerPage)>;

    static constexpr size_t MostPage = 32 << 20; ///< bytes
    static constexpr int Patience = 5;           ///< s without a byte

    /// \throws SystemError
    ManagerClient(event_base *, const Endpoint &squid);
    ManagerClient(const ManagerClient &) = delete;

    /// Requests an action, such as "msfrs-metrics". `done` is called once, later.
    /// \throws SystemError
    void ask(const std::string &action, Done done);

private:
    std::string squid_;
    std::unique_ptr<evhttp_connection, void (*)(evhttp_connection *)> connection_;
};

} // namespace msfrs::page
