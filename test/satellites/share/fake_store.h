// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A store without a network, shared by several gateways of a test.
#pragma once

#include "satellites/share/sharing.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace msfrs::test {

/// A store whose availability the test sets.
struct Server {
    struct Left {
        std::string message;
        int64_t at;
    };
    std::map<std::string, Left> left;
    bool there = true;    ///< it answers
    bool refuses = false; ///< connections are refused at once
    int64_t delay = 1'000'000; ///< ns
};

class FakeStore final : public share::Store {
public:
    FakeStore(Server &server, std::vector<std::string> names): server_(server), names_(std::move(names)) {}

    void exchange(const std::string &message, Done done) override
    {
        message_ = message;
        done_ = std::move(done);
        asked_ = clock;
    }
    void abandon() override { done_ = nullptr; }

    void step(const int64_t now)
    {
        clock = now;
        if (!done_ || (!server_.refuses && (!server_.there || now - asked_ < server_.delay)))
            return;
        Answer answer;
        answer.failure = server_.refuses ? "cannot connect: Connection refused" : "";
        for (const auto &name : names_) {
            const auto found = server_.left.find(name);
            const bool there = found != server_.left.end() && now - found->second.at < share::TimeToLive;
            answer.messages.push_back(there ? std::optional(found->second.message) : std::nullopt);
        }
        if (!server_.refuses)
            server_.left[names_[0]] = {message_, now};
        std::exchange(done_, nullptr)(answer, now);
    }

    int64_t clock = 0;

private:
    Server &server_;
    std::vector<std::string> names_;
    std::string message_;
    Done done_;
    int64_t asked_ = 0;
};

} // namespace msfrs::test
