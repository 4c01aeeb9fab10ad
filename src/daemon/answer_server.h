// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A server that takes one question per connection, answers it and closes: for a few clients at a time, which need not
/// be trusted.
#pragma once

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
        size_t connections; ///< at once; one more replaces the oldest, first of those that have not asked yet
        size_t question;    ///< bytes; the server does not wait for the rest of a longer question
        int patience;       ///< s for a complete question to arrive, and for its complete answer to be read
    };
    /// \param got bytes received so far \param peer the client's address as text, IPv4 also if mapped to IPv6; empty for
    /// other sockets \returns the answer; nothing: the question is not complete
    using Answer = std::function<std::optional<std::string>(std::string_view got, const std::string &peer)>;

    /// \param listening a listening, non-blocking socket
    /// \throws SystemError
    AnswerServer(event_base *, Descriptor listening, Limits, Answer);
    ~AnswerServer();
    AnswerServer(const AnswerServer &) = delete;

private:
    struct Connection;

    void accept();
    void close(bufferevent *);

    event_base *base_;
    Limits limits_;
    Answer answer_;
    Descriptor socket_;
    Event acceptable_;
    std::map<bufferevent *, std::unique_ptr<Connection>> connections_;
    uint64_t accepted_ = 0;
};

} // namespace msfrs
