// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What Valkey or Redis answers to the commands of one exchange. It is read from a network: nothing is taken for
/// granted.
#ifndef MSFRS_SHARE_REPLIES_H
#define MSFRS_SHARE_REPLIES_H

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

/// The commands, as the protocol has them.
std::string Format(const std::vector<std::string> &words);

class Replies {
public:
    /// \param mostBytes of a reply
    explicit Replies(size_t mostBytes);
    ~Replies();

    /// A command was sent: its reply is wanted, after those of all before.
    void expect(const Command command) { wanted_.push_back(command); }
    bool complete() const { return wanted_.empty(); }
    /// Bytes came. \returns false: something is wrong, see failure()
    bool feed(std::string_view bytes);
    /// What Fetch brought; to be called when complete.
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

#endif
