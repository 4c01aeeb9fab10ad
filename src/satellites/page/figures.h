// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The content of the page, computed from the manager's reports.
#pragma once

#include "satellites/page/history.h"
#include "satellites/page/name_book.h"
#include "satellites/page/overall.h"
#include "satellites/page/why.h"

namespace msfrs::page {

class Figures {
public:
    static constexpr size_t MostUsersShown = 1000;

    /// \param usersPace s between two calls of takeUsers(), at most
    explicit Figures(int64_t usersPace = 6);

    /// Reads mgr:msfrs-metrics. \param now s of a clock that is never set \param wall s of the wall clock
    /// \throws PageError
    void takeMetrics(std::string_view text, double now, int64_t wall);
    /// Reads mgr:msfrs. \throws PageError
    void takeReport(std::string_view text);
    /// Reads mgr:msfrs-users; for a Squid without it, uses the list of takeReport(): users with most bytes.
    /// \throws PageError
    void takeUsers(std::string_view text, double now, int64_t wall);
    void takeTopUsers(double now, int64_t wall) { takeUsers(situation_.report.users, now, wall); }
    void takeFaults(std::vector<Fault> faults) { situation_.faults = std::move(faults); }
    void offerBoosts() { boosts_ = true; }
    /// The user with a name or address; nothing: there is none now.
    std::optional<std::string> userOf(const std::string &asked) const;
    void takeNames(NameBook names) { names_ = std::move(names); }
    History &history() { return history_; }

    /// Age of the figures, s; nothing: none yet. \param now as above
    std::optional<double> age(const double now) const { return known_ ? std::optional(now - at_) : std::nullopt; }

    /// \param trouble reason for outdated figures; empty: they are current \param age as above
    std::string dataJson(int64_t wall, int64_t pace, const std::string &trouble, std::optional<double> age = {}) const;
    /// The verdict alone, {light, text}. \param trouble as above
    std::string overallJson(const std::string &trouble) const;
    /// The users with the highest recent rates.
    std::string usersJson() const;
    /// A user, host or transaction, and the reasons why it is slow.
    std::string userJson(const std::string &name, const std::string &trouble, std::optional<double> age = {}) const;

    /// The same for the user at an address, in figures without words, and without anything about others.
    std::string ownJson(const std::string &address, const std::string &trouble, std::optional<double> age = {}) const;

    /// The last hour of a user's rate, as History::json(); no columns: it received nothing.
    std::string pastJson(const std::string &name) const;

private:
    void takeUsers(std::vector<UserRow>, double now, int64_t wall);
    void noteRefusals(double now);
    Judgement verdict(const std::string &trouble) const;
    void remember(int64_t wall);

    Situation situation_;
    NameBook names_;
    double at_ = 0;     ///< when the last state was taken
    bool known_ = false;
    bool boosts_ = false; ///< whether the page may ask for them
    std::map<std::string, double> refusedAt_; ///< s, when a class's requests were last refused
    History history_{History::Shape()};
    History usersHistory_; ///< rates by user, of those who received anything; not saved
};

} // namespace msfrs::page
