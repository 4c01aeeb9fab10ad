// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The control socket: a line in, a text out, then the connection closes.
#pragma once

#include "daemon/answer_server.h"

namespace msfrs {

class Control {
public:
    /// \returns the answer to a command, the line without its end
    using Answer = std::function<std::string(std::string_view command)>;

    static constexpr size_t MostConnections = 16, MostCommand = 64; ///< at once; bytes, a longer command closes it
    static constexpr int Patience = 5; ///< s for a complete command to arrive, and for its complete answer to be read

    /// Listens at a path, for the owner (root, before privileges are dropped) and its group only. A connection beyond
    /// MostConnections replaces the oldest, first of those that have not sent a command. A stale socket is replaced.
    /// \param program for messages
    /// \throws SystemError
    Control(event_base *, const std::string &path, const std::string &program, Answer);
    ~Control();
    Control(const Control &) = delete;

private:
    std::string path_;
    AnswerServer server_;
};

/// Sends a command to the socket of a running `program`. \returns its answer \throws SystemError
std::string Ask(const std::string &path, const std::string &program, const std::string &command);

} // namespace msfrs
