// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/replies.h"

#include "config/fields.h"

#include <hiredis.h>
#include <new>

namespace msfrs::share {

namespace {

/// The first word of an error, a code. The rest may repeat the command, including a password.
std::string_view Code(const std::string_view error) { return error.substr(0, error.find(' ')); }

const char *NameOf(const Command command)
{
    switch (command) {
    case Command::Auth: return "AUTH";
    case Command::Select: return "SELECT";
    case Command::Fetch: return "GETRANGE";
    case Command::Leave: break;
    }
    return "SET";
}

} // namespace

std::string Format(const std::vector<std::string> &words)
{
    std::vector<const char *> texts;
    std::vector<size_t> sizes;
    for (const auto &word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
    }
    char *command = nullptr;
    const auto size = redisFormatCommandArgv(&command, static_cast<int>(words.size()), texts.data(), sizes.data());
    if (size < 0)
        throw std::bad_alloc();
    const std::unique_ptr<char, void (*)(char *)> owned(command, redisFreeCommand);
    return std::string(command, static_cast<size_t>(size));
}

Replies::Replies(const size_t mostBytes):
    functions_(std::make_unique<redisReplyObjectFunctions>()), reader_(redisReaderCreate(), redisReaderFree),
    mostBytes_(mostBytes)
{
    if (!reader_)
        throw std::bad_alloc();
    *functions_ = *reader_->fn;
    // None of our commands has an array as reply, whose announced size alone would cause an allocation.
    functions_->createArray = [](const redisReadTask *, auto) -> void * { return nullptr; };
    reader_->fn = functions_.get();
}

Replies::~Replies() = default;

bool Replies::feed(const std::string_view bytes)
{
    pending_ += bytes.size();
    if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
        fail("sends an invalid reply");
    while (failure_.empty()) {
        void *found = nullptr;
        if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) {
            fail("sends an invalid reply");
            break;
        }
        if (!found) {
            if (pending_ > mostBytes_)
                fail("sends a reply of more than " + std::to_string(mostBytes_) + " bytes");
            break;
        }
        const std::unique_ptr<void, void (*)(void *)> reply(found, freeReplyObject);
        pending_ = 0;
        if (wanted_.empty())
            fail("sends an unrequested reply");
        else
            one(*static_cast<const redisReply *>(found));
    }
    return failure_.empty();
}

void Replies::one(const redisReply &reply)
{
    const auto command = wanted_.front();
    wanted_.pop_front();
    const std::string_view text =
        reply.type == REDIS_REPLY_ERROR || reply.type == REDIS_REPLY_STATUS || reply.type == REDIS_REPLY_STRING
        ? std::string_view(reply.str, static_cast<size_t>(reply.len)) : std::string_view();
    if (reply.type == REDIS_REPLY_ERROR) {
        if (command == Command::Fetch && Code(text) == "WRONGTYPE")
            messages_.emplace_back("another type"); // not a message; the other keys may be valid
        else if (command == Command::Auth)
            fail("refuses user or password: " + Shown(Code(text)));
        else
            fail(std::string("refuses ") + NameOf(command) + ": " + Shown(text));
    } else if (command == Command::Fetch && reply.type == REDIS_REPLY_STRING) {
        messages_.push_back(text.empty() ? std::nullopt : std::optional<std::string>(text));
    } else if (command == Command::Fetch || reply.type != REDIS_REPLY_STATUS || text != "OK") {
        fail(std::string("sends a reply of the wrong type to ") + NameOf(command));
    }
}

} // namespace msfrs::share
