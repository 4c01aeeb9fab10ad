// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Logs one line for each change of a state, rate-limited if it changes all the time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace msfrs::share {

class StateLog {
public:
    using Log = std::function<void(const std::string &)>;
    static constexpr unsigned Burst = 6;                 ///< lines of a subject in a burst
    static constexpr int64_t Refill = 10'000'000'000;    ///< ns for one more line

    explicit StateLog(Log log): log_(std::move(log)) {}

    /// \param subject the owner of the state, such as the store or a gateway
    /// \param state text of the line; an unchanged state is not logged again
    void say(const std::string &subject, const std::string &state, const int64_t now)
    {
        auto &s = subjects_[subject];
        if (s.state == state)
            return;
        s.left += s.said ? 0 : 1;
        s.state = state;
        s.said = false;
        saySoon(subject, s, now);
    }
    /// Call it regularly: logs the final state of a subject whose changes were suppressed.
    void tick(const int64_t now)
    {
        for (auto &[name, subject] : subjects_)
            saySoon(name, subject, now);
    }

private:
    struct Subject {
        std::string state;
        bool said = true;  ///< whether its state was logged
        int64_t since = 0; ///< start of the refill of lines
        unsigned used = 0, left = 0;
    };

    void saySoon(const std::string &name, Subject &s, const int64_t now)
    {
        if (s.said)
            return;
        for (; s.used > 0 && now - s.since >= Refill; s.since += Refill)
            --s.used;
        if (s.used == Burst)
            return;
        if (s.used == 0)
            s.since = now;
        ++s.used;
        s.said = true;
        log_(name + ": " + s.state +
             (s.left ? " (" + std::to_string(s.left) + " changes before were not said)" : std::string()));
        s.left = 0;
    }

    Log log_;
    std::map<std::string, Subject> subjects_;
};

} // namespace msfrs::share
