// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A question in, an answer out, and the connection is over: for a few who ask at once, and whoever they are.
#ifndef MSFRS_DAEMON_ANSWER_SERVER_H
#define MSFRS_DAEMON_ANSWER_SERVER_H

#include "daemon/event.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct bufferevent;

namespace msfrs {

class AnswerServer {
public:
    struct Limits {
        size_t connections; ///< at once; for one more the oldest makes room, those first that have not asked yet
        size_t question;    ///< bytes, from which on a question that is not complete is not waited for
        int patience;       ///< s for a question to come, and for its answer to be read, all in all
    };
    /// \param got what has come so far \returns the answer; nothing: there is more of the question to come
    using Answer = std::function<std::optional<std::string>(std::string_view got)>;

    /// \param listening a socket that listens and does not block
    /// \throws SystemError
    AnswerServer(event_base *, Descriptor listening, Limits, Answer);
    ~AnswerServer();
    AnswerServer(const AnswerServer &) = delete;

private:
    struct Connection;

    void accept();
    void close(bufferevent *);
    void makeRoom();

    event_base *base_;
    Limits limits_;
    Answer answer_;
    Descriptor socket_;
    Event acceptable_;
    std::map<bufferevent *, std::unique_ptr<Connection>> connections_;
    uint64_t accepted_ = 0;
};

} // namespace msfrs

#endif
