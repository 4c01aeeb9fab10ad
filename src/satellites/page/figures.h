// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The content of the page, computed from the manager's reports.
#ifndef MSFRS_PAGE_FIGURES_H
#define MSFRS_PAGE_FIGURES_H

#include "satellites/page/history.h"
#include "satellites/page/why.h"

namespace msfrs::page {

class Figures {
public:
    static constexpr size_t MostUsersShown = 50;

    /// Reads mgr:msfrs-metrics. \param now s of a clock that is never set \param wall s of the wall clock
    /// \throws PageError
    void takeMetrics(std::string_view text, double now, int64_t wall);
    /// Reads mgr:msfrs. \throws PageError
    void takeReport(std::string_view text);
    /// Reads mgr:msfrs-users; for a Squid without it, uses the list of takeReport(): users with most bytes.
    /// \throws PageError
    void takeUsers(std::string_view text, double now);
    void takeTopUsers(double now) { situation_.users.update(situation_.report.users, now); }
    History &history() { return history_; }

    /// Age of the figures, s; nothing: none yet. \param now as above
    std::optional<double> age(const double now) const { return known_ ? std::optional(now - at_) : std::nullopt; }

    /// \param trouble reason for outdated figures; empty: they are current \param age as above
    std::string dataJson(int64_t wall, int64_t pace, const std::string &trouble, std::optional<double> age = {}) const;
    /// A user, host or transaction, and the reasons why it is slow.
    std::string userJson(const std::string &name, const std::string &trouble, std::optional<double> age = {}) const;

private:
    void remember(int64_t wall);

    Situation situation_;
    double at_ = 0;     ///< when the last state was taken
    bool known_ = false;
    History history_{History::Shape()};
};

} // namespace msfrs::page

#endif
