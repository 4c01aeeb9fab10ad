// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Current usage: the users that the manager lists, and their recent rates.
#pragma once

#include "satellites/page/manager_report.h"

#include <optional>
#include <unordered_map>

namespace msfrs::page {

struct User {
    UserRow row;
    std::optional<double> rate; ///< bit/s; nothing: first seen now
};

class Users {
public:
    /// Sets the current users; others are forgotten. \param now s of a clock that is never set
    void update(std::vector<UserRow> rows, double now);

    /// Users with the highest recent rate first; of equals, those with most bytes.
    std::vector<const User *> top(size_t most) const;
    /// A user's rows, one for each class.
    std::vector<const User *> find(const std::string &name) const;
    /// The user that an address belongs to, if that is a network (ADDRESS/BITS); any other name unchanged.
    std::string nameOf(const std::string &asked) const;
    size_t size() const { return users_.size(); }
    /// Averaging time of the rates, s; 0: none known yet.
    double over() const { return over_; }

private:
    std::vector<User> users_;
    std::unordered_multimap<std::string, size_t> byName_;
    double at_ = 0; ///< of the last update
    double over_ = 0;
};

} // namespace msfrs::page
