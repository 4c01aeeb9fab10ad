// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One line for each change of a state, and few where it changes all the time.
#ifndef MSFRS_SHARE_STATE_LOG_H
#define MSFRS_SHARE_STATE_LOG_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace msfrs::share {

class StateLog {
public:
    using Log = std::function<void(const std::string &)>;
    static constexpr unsigned Burst = 6;                 ///< lines of a subject at once
    static constexpr int64_t Refill = 10'000'000'000;    ///< ns after which it may have one more

    explicit StateLog(Log log): log_(std::move(log)) {}

    /// \param subject what has a state, such as the store or a gateway
    /// \param state as the line has it; one that the subject is in already is not said again
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
    /// To be called now and then: says the state in which a subject has stayed that had changed too often.
    void tick(const int64_t now)
    {
        for (auto &[name, subject] : subjects_)
            saySoon(name, subject, now);
    }

private:
    struct Subject {
        std::string state;
        bool said = true;  ///< its state
        int64_t since = 0; ///< from when on a line comes back
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

#endif
