// SPDX-License-Identifier: GPL-2.0-or-later
#include "quota/quotas.h"

#include <algorithm>
#include <cassert>

namespace msfrs {

namespace {

size_t IndexOf(const std::vector<QuotaClass> &classes, const std::string &name)
{
    const auto named = [&](const QuotaClass &c) { return c.name == name; };
    const auto found = std::find_if(classes.begin(), classes.end(), named);
    return static_cast<size_t>(found - classes.begin());
}

} // namespace

std::optional<QuotaFault> CheckQuotas(const std::vector<QuotaClass> &classes)
{
    for (size_t n = 0; n < classes.size(); ++n) {
        const auto &c = classes[n];
        if (c.bytes > 0 && c.over.empty())
            return QuotaFault{n, "quota= needs over=, the class in which users go on; give both"};
        if (c.bytes == 0 && !c.over.empty())
            return QuotaFault{n, "over=" + c.over + " needs quota=; give both, as in quota=5GB/day"};
        if (c.bytes > 0 && IndexOf(classes, c.over) == classes.size()) {
            std::string known;
            for (const auto &other : classes)
                known += other.name == c.name ? "" : (known.empty() ? "" : ", ") + other.name;
            return QuotaFault{n, "over=" + c.over + " names no class; " +
                                     (known.empty() ? "there is no other one" : "known are " + known)};
        }
    }
    for (size_t n = 0; n < classes.size(); ++n) {
        std::string way = classes[n].name;
        size_t at = n;
        for (size_t steps = 0; steps < classes.size() && classes[at].bytes > 0; ++steps) {
            at = IndexOf(classes, classes[at].over);
            way += " to " + classes[at].name;
            if (at == n) {
                return QuotaFault{n, "over=" + classes[n].over + " leads in a circle (" + way +
                                         "); the last class of such a chain has no quota"};
            }
        }
    }
    return std::nullopt;
}

Quotas::Quotas(std::vector<QuotaClass> classes, const int64_t local): local_(local)
{
    configure(std::move(classes), local);
}

void Quotas::configure(std::vector<QuotaClass> classes, const int64_t local)
{
    assert(!CheckQuotas(classes));
    tick(local); // by the periods that there were
    auto before = std::move(accounts_);
    accounts_.clear();
    any_ = false;
    for (auto &c : classes) {
        auto &account = accounts_.emplace_back();
        static_cast<QuotaClass &>(account) = c;
        account.number = QuotaPeriodNumber(c.period, local_);
        if (c.bytes == 0)
            continue;
        any_ = true;
        account.overIndex = IndexOf(classes, c.over);
        for (auto &old : before) {
            if (old.name != c.name || old.bytes == 0)
                continue;
            account.passed = old.passed;
            if (old.period == c.period)
                account.counts = std::move(old.counts);
        }
        Recount(account);
    }
}

size_t Quotas::classOf(size_t cls, const std::string_view user) const
{
    for (;;) { // no circle: CheckQuotas()
        const auto &account = accounts_.at(cls);
        if (account.usersOver == 0)
            return cls;
        const auto found = account.counts.find(user);
        if (found == account.counts.end() || found->second->bytes < account.bytes)
            return cls;
        cls = account.overIndex;
    }
}

bool Quotas::charge(const size_t cls, const std::string_view user, const int64_t bytes)
{
    assert(bytes >= 0);
    auto &account = accounts_.at(cls);
    if (account.bytes == 0)
        return false;
    if (account.counts.size() >= MostUsers && account.counts.count(user) == 0)
        ForgetHalf(account);
    auto &had = CountOf(account.counts, user).bytes;
    const bool before = had >= account.bytes;
    had += std::min(bytes, INT64_MAX - had);
    if (before || had < account.bytes)
        return false;
    ++account.usersOver;
    ++account.passed;
    return true;
}

bool Quotas::tick(const int64_t local)
{
    local_ = local;
    bool back = false;
    for (auto &account : accounts_) {
        const auto number = QuotaPeriodNumber(account.period, local);
        if (number > account.number) {
            back = back || account.usersOver > 0;
            account.counts.clear();
            account.usersOver = 0;
        }
        account.number = number;
    }
    return back;
}

QuotaReport Quotas::report(const size_t cls, const size_t most) const
{
    const auto &account = accounts_.at(cls);
    QuotaReport r;
    if (account.bytes == 0)
        return r;
    r.bytes = account.bytes;
    r.period = account.period;
    r.over = account.over;
    r.endsIn = QuotaPeriodEnd(account.period, local_) - local_;
    r.users = account.counts.size();
    r.usersOver = account.usersOver;
    r.passed = account.passed;
    std::vector<const Count *> all;
    all.reserve(account.counts.size());
    for (const auto &named : account.counts)
        all.push_back(named.second.get());
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(), [](const Count *const a, const Count *const b) {
        return a->bytes != b->bytes ? a->bytes > b->bytes : a->user < b->user;
    });
    std::for_each(all.begin(), end, [&](const Count *const c) { r.most.push_back({c->user, c->bytes}); });
    return r;
}

/// Made if it is not there.
Quotas::Count &Quotas::CountOf(Counts &counts, const std::string_view user)
{
    const auto found = counts.find(user);
    if (found != counts.end())
        return *found->second;
    auto count = std::make_unique<Count>();
    count->user = user;
    auto &made = *count;
    counts.emplace(made.user, std::move(count));
    return made;
}

void Quotas::ForgetHalf(Account &account)
{
    std::vector<std::unique_ptr<Count>> all;
    all.reserve(account.counts.size());
    for (auto &named : account.counts)
        all.push_back(std::move(named.second));
    account.counts.clear(); // before any name goes that it goes by
    const auto half = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), half, all.end(),
                     [](const auto &a, const auto &b) { return a->bytes > b->bytes; });
    std::for_each(all.begin(), half, [&](auto &count) {
        const std::string_view name = count->user;
        account.counts.emplace(name, std::move(count));
    });
    Recount(account);
}

void Quotas::Recount(Account &account)
{
    account.usersOver = static_cast<size_t>(std::count_if(account.counts.begin(), account.counts.end(), [&](auto &c) {
        return c.second->bytes >= account.bytes;
    }));
}

} // namespace msfrs
