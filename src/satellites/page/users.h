// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Who uses how much now: the users that the manager lists, and what each of them received of late.
#ifndef MSFRS_PAGE_USERS_H
#define MSFRS_PAGE_USERS_H

#include "satellites/page/manager_report.h"

#include <optional>
#include <unordered_map>

namespace msfrs::page {

struct User {
    UserRow row;
    std::optional<double> rate; ///< bit/s; nothing: seen for the first time
};

class Users {
public:
    /// Takes the users that there are now; others are forgotten. \param now s of a clock that is never set
    void update(std::vector<UserRow> rows, double now);

    /// Those who received most of late first; of equals, those with most bytes.
    std::vector<const User *> top(size_t most) const;
    /// A user's rows, one for each class.
    std::vector<const User *> find(const std::string &name) const;
    /// The user that an address belongs to, if that is a network (ADDRESS/BITS); any other name as it is.
    std::string nameOf(const std::string &asked) const;
    size_t size() const { return users_.size(); }
    /// s over which the rates are means; 0: none is known yet.
    double over() const { return over_; }

private:
    std::vector<User> users_;
    std::unordered_multimap<std::string, size_t> byName_;
    double at_ = 0; ///< of the last update
    double over_ = 0;
};

} // namespace msfrs::page

#endif
