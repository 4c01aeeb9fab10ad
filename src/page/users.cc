// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/users.h"

#include "page/gateway.h"

#include <algorithm>

namespace msfrs::page {

void Users::update(std::vector<UserRow> rows, const double now)
{
    std::vector<User> users;
    std::unordered_multimap<std::string, size_t> byName;
    users.reserve(rows.size());
    byName.reserve(rows.size());
    for (auto &row : rows) {
        std::optional<double> rate;
        for (const auto *const before : find(row.user)) {
            if (before->row.cls == row.cls && now > at_)
                rate = 8 * Grown(before->row.bytes, row.bytes) / (now - at_);
        }
        byName.emplace(row.user, users.size());
        users.push_back({std::move(row), rate});
    }
    over_ = users_.empty() || now <= at_ ? 0 : now - at_;
    users_ = std::move(users);
    byName_ = std::move(byName);
    at_ = now;
}

std::vector<const User *> Users::top(const size_t most) const
{
    std::vector<const User *> all;
    all.reserve(users_.size());
    for (const auto &user : users_)
        all.push_back(&user);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(), [](const User *const a, const User *const b) {
        return std::pair(a->rate.value_or(0), a->row.bytes) > std::pair(b->rate.value_or(0), b->row.bytes);
    });
    all.erase(end, all.end());
    return all;
}

std::vector<const User *> Users::find(const std::string &name) const
{
    std::vector<const User *> found;
    const auto [first, last] = byName_.equal_range(name);
    for (auto at = first; at != last; ++at)
        found.push_back(&users_[at->second]);
    return found;
}

} // namespace msfrs::page
