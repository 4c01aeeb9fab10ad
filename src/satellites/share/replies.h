// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The replies of Valkey or Redis to the commands of one exchange. They come from a network: nothing is trusted.
#pragma once

#include "satellites/share/store.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>

struct redisReader;
struct redisReply;
struct redisReplyObjectFunctions;

namespace msfrs::share {

enum class Command { Auth, Select, Fetch, Leave };

/// Encodes a command for the protocol.
std::string Format(const std::vector<std::string> &words);

class Replies {
public:
    /// \param mostBytes maximum size of a reply
    explicit Replies(size_t mostBytes);
    ~Replies();

    /// Records that a command was sent; its reply follows those of all earlier ones.
    void expect(const Command command) { wanted_.push_back(command); }
    bool complete() const { return wanted_.empty(); }
    /// Processes received bytes. \returns false on an error, see failure()
    bool feed(std::string_view bytes);
    /// The results of Fetch; call it when complete.
    std::vector<std::optional<std::string>> take() { return std::exchange(messages_, {}); }
    const std::string &failure() const { return failure_; }

private:
    void one(const redisReply &);
    void fail(std::string why) { failure_ = std::move(why); }

    std::unique_ptr<redisReplyObjectFunctions> functions_; ///< the reader's
    std::unique_ptr<redisReader, void (*)(redisReader *)> reader_;
    const size_t mostBytes_;
    size_t pending_ = 0; ///< bytes since the last reply
    std::deque<Command> wanted_;
    std::vector<std::optional<std::string>> messages_;
    std::string failure_;
};

} // namespace msfrs::share
