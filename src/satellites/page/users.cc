// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/users.h"

#include "satellites/page/gateway.h"

#include <algorithm>

#include <arpa/inet.h>
#include <charconv>

namespace msfrs::page {

namespace {

/// An IPv6 address; users with IPv4 are single addresses.
std::optional<in6_addr> AddressOf(const std::string &text)
{
    in6_addr address{};
    return inet_pton(AF_INET6, text.c_str(), &address) == 1 ? std::make_optional(address) : std::nullopt;
}

/// Whether the first bits are equal.
bool Agree(const in6_addr &a, const in6_addr &b, const unsigned bits)
{
    for (unsigned n = 0; n < std::min(bits, 128u); ++n) {
        if ((a.s6_addr[n / 8] ^ b.s6_addr[n / 8]) >> (7 - n % 8) & 1)
            return false;
    }
    return bits <= 128;
}

} // namespace

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

std::string Users::nameOf(const std::string &asked) const
{
    const auto address = AddressOf(asked);
    if (!address || byName_.count(asked))
        return asked;
    for (const auto &user : users_) {
        const auto slash = user.row.user.find('/');
        if (slash == std::string::npos)
            continue;
        const auto network = AddressOf(user.row.user.substr(0, slash));
        unsigned bits = 0;
        const auto *const end = user.row.user.data() + user.row.user.size();
        if (network && std::from_chars(user.row.user.data() + slash + 1, end, bits).ptr == end &&
            Agree(*address, *network, bits))
            return user.row.user;
    }
    return asked;
}

} // namespace msfrs::page
