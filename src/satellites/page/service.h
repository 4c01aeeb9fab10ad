// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-page: polls Squid, keeps the last hour, and answers requests.
#pragma once

#include "daemon/answer_server.h"
#include "satellites/page/boosts.h"
#include "satellites/page/figures.h"
#include "satellites/page/manager_client.h"
#include "satellites/page/name_files.h"
#include "satellites/page/site.h"

namespace msfrs::page {

class Service {
public:
    using Log = std::function<void(const std::string &)>;

    static constexpr size_t MostConnections = 64;
    static constexpr int Patience = 5;             ///< s for a request and for its answer
    static constexpr int64_t SavePace = 60;        ///< s between two saves of the history

    /// Opens all files and sockets, and drops root.
    /// \throws RuleError, SystemError
    Service(const Config &, Log);

    /// Serves until SIGTERM or SIGINT. \param ready called once requests are answered
    void run(const std::function<void()> &ready);

private:
    /// Requests a page of Squid; an exception of `take` ends the poll.
    void ask(const char *action, const std::function<void(const ManagerPage &)> &take);
    void poll();
    void pollReport();
    void pollUsers();
    /// Ends a poll. \param why reason of a failure; empty: success
    void polled(const std::string &why);
    void readNames();
    void load();
    void save();

    Config config_;
    Log log_;
    EventBase base_ = NewEventBase();
    Site site_, usersSite_;
    NameFiles names_;
    std::optional<Boosts> boosts_;
    Figures figures_{config_.pace + UsersPace};
    Prepared prepared_;
    ManagerClient squid_;
    Timer due_, saveDue_;
    AnswerServer server_;
    std::optional<AnswerServer> usersServer_; ///< of its own, so that users cannot crowd out the administrator
    std::string saveTrouble_; ///< why the history could not be saved last time
    int64_t usersDue_ = 0, pollDue_ = 0; ///< ns of the monotonic clock
    int64_t slot_ = 0;        ///< of the prepared history
};

} // namespace msfrs::page
