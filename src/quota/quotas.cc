// SPDX-License-Identifier: GPL-2.0-or-later
#include "quota/quotas.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

namespace msfrs {

namespace {

/// s by which one process may have read the clock before another that shares the table. A process that was blocked for
/// longer sets the clock back, so that a period may end twice: five ticks.
constexpr int64_t Slower = 5;

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
            return QuotaFault{n, "quota= needs over=, the class to which users over quota are moved; give both"};
        if (c.bytes == 0 && !c.over.empty())
            return QuotaFault{n, "over=" + c.over + " needs quota=; give both, as in quota=5GB/day"};
        if (c.bytes > 0 && IndexOf(classes, c.over) == classes.size()) {
            std::string known;
            for (const auto &other : classes)
                known += other.name == c.name ? "" : (known.empty() ? "" : ", ") + other.name;
            return QuotaFault{n, "over=" + c.over + " is not another class; " +
                                     (known.empty() ? "there is none" : "known are " + known)};
        }
    }
    size_t limited = 0;
    for (size_t n = 0; n < classes.size(); ++n) {
        limited += classes[n].bytes > 0;
        if (limited > ledger::QuotaTable::Accounts) {
            return QuotaFault{n, "one quota= too many: at most " + std::to_string(ledger::QuotaTable::Accounts) +
                                     " classes may have one"};
        }
        std::string way = classes[n].name;
        size_t at = n;
        for (size_t steps = 0; steps < classes.size() && classes[at].bytes > 0; ++steps) {
            at = IndexOf(classes, classes[at].over);
            way += " to " + classes[at].name;
            if (at == n) {
                return QuotaFault{n, "over=" + classes[n].over + " forms a cycle (" + way +
                                         "); the last class of such a chain has no quota"};
            }
        }
    }
    return std::nullopt;
}

Quotas::Quotas(ledger::QuotaTable &table, std::vector<QuotaClass> classes, const int64_t local):
    table_(table), local_(local), moves_(table.moves.load())
{
    configure(std::move(classes), local);
    uint64_t never = 0;
    table_.savedAt.compare_exchange_strong(never, static_cast<uint64_t>(local_));
}

void Quotas::configure(std::vector<QuotaClass> classes, const int64_t local)
{
    assert(!CheckQuotas(classes));
    tick(local); // by the previous periods
    accounts_.clear();
    for (const auto &c : classes) {
        accounts_.emplace_back();
        static_cast<QuotaClass &>(accounts_.back()) = c;
    }
    std::vector<const Account *> owners(ledger::QuotaTable::Accounts); // of the table's accounts
    size_t limited = 0;
    for (auto &account : accounts_) {
        if (account.bytes == 0)
            continue;
        ++limited;
        account.overIndex = IndexOf(classes, account.over);
        begin(account, QuotaPeriodNumber(account.period, local_));
        if (account.shared != ledger::NoAccount)
            owners[account.shared] = &account;
    }
    for (size_t n = 0; n < owners.size(); ++n) {
        if (!owners[n])
            table_.accounts[n].limit.store(0);
    }
    ledger::EachCount(table_, [&](uint32_t, ledger::QuotaEntry &entry) {
        const auto number = entry.account.load();
        const auto owner = number >= 1 && number <= owners.size() ? owners[number - 1] : nullptr;
        if (owner)
            entry.next.store(keyOf(accounts_[owner->overIndex], ledger::NameOf(entry)));
    });
    table_.limited.store(limited);
    any_ = limited > 0;
}

/// Finds or makes the account of a class in the table.
void Quotas::begin(Account &account, const int64_t number)
{
    account.shared = ledger::AccountOf(table_, ledger::ClassKey(account.name));
    if (account.shared == ledger::NoAccount)
        return;
    auto &shared = table_.accounts[account.shared];
    const auto kind = static_cast<uint64_t>(account.period);
    auto before = shared.period.load();
    for (;;) {
        const auto runs = ledger::PeriodWord::Of(before);
        if (runs.generation != 0 && runs.kind == kind)
            break;
        if (shared.period.compare_exchange_weak(before, runs.next(kind, number).word()))
            break;
    }
    end(account, ledger::PeriodWord::Of(shared.period.load()), number); // of a class that had no quota for a while
    shared.limit.store(static_cast<uint64_t>(account.bytes));
    shared.over.store(ledger::ClassKey(account.over));
}

/// Whether any user belongs to another class than before.
bool Quotas::moved()
{
    const auto moves = table_.moves.load();
    return std::exchange(moves_, moves) != moves;
}

size_t Quotas::classOf(size_t cls, const std::string_view user) const
{
    for (;;) { // no cycle: CheckQuotas()
        const auto &account = accounts_.at(cls);
        if (account.bytes == 0)
            return cls;
        const auto place = ledger::Find(table_.entries, keyOf(account, user));
        if (place == ledger::NoEntry || ledger::BytesIn(table_, table_.entries[place]) < account.bytes)
            return cls;
        cls = account.overIndex;
    }
}

/// \returns the index of a user's entry; NoEntry: it cannot be counted now
uint32_t Quotas::enter(const Account &account, const std::string_view user)
{
    const auto key = keyOf(account, user);
    const auto known = ledger::Find(table_.entries, key);
    if (known != ledger::NoEntry) {
        const auto &entry = table_.entries[known];
        if (entry.length.load() != 0 && entry.account.load() == account.shared + 1)
            return known;
    }
    if (account.shared == ledger::NoAccount)
        return ledger::NoEntry;
    return ledger::TakeCount(table_, key, account.shared, keyOf(accounts_[account.overIndex], user), user);
}

void Quotas::enroll(size_t cls, const std::string_view user)
{
    for (; accounts_.at(cls).bytes > 0; cls = accounts_[cls].overIndex)
        enter(accounts_[cls], user);
}

bool Quotas::charge(const size_t cls, const std::string_view user, const int64_t bytes)
{
    assert(bytes >= 0);
    const auto &account = accounts_.at(cls);
    if (account.bytes > 0) {
        const auto place = enter(account, user);
        if (place != ledger::NoEntry)
            ledger::AddBytes(table_, table_.entries[place], bytes);
    }
    return moved();
}

/// The time of the clock, common to all that share the table.
int64_t Quotas::shown(const int64_t local)
{
    auto before = table_.clock.load();
    for (;;) {
        const auto latest = static_cast<int64_t>(before);
        if (local == latest || (local < latest && latest - local <= Slower))
            return latest;
        if (table_.clock.compare_exchange_weak(before, static_cast<uint64_t>(local)))
            return local;
    }
}

/// Ends the current period, if the clock shows another. \returns false if another process has done so
bool Quotas::end(const Account &account, const ledger::PeriodWord &runs, const int64_t number)
{
    auto &shared = table_.accounts[account.shared];
    auto before = runs.word();
    if (number < runs.number) { // the clock was set back: the current period continues
        const ledger::PeriodWord same{runs.generation, runs.kind, number};
        return shared.period.compare_exchange_strong(before, same.word());
    }
    if (number == runs.number)
        return true;
    bool over = false;
    eachUser(account, [&](uint32_t, const ledger::QuotaEntry &entry) {
        over = over || ledger::BytesIn(table_, entry) >= account.bytes;
    });
    const auto next = runs.next(runs.kind, number);
    if (!shared.period.compare_exchange_strong(before, next.word()))
        return false;
    if (over)
        table_.moves.fetch_add(1);
    eachUser(account, [&](uint32_t, ledger::QuotaEntry &entry) { // generations recur, but these counts must not
        auto count = entry.count.load();
        if (count != 0 && ledger::CountWord::Of(count).generation != next.generation)
            entry.count.compare_exchange_strong(count, 0);
    });
    return true;
}

bool Quotas::tick(const int64_t local)
{
    local_ = shown(local);
    for (const auto &account : accounts_) {
        if (account.bytes == 0 || account.shared == ledger::NoAccount)
            continue;
        const auto runs = ledger::PeriodWord::Of(table_.accounts[account.shared].period.load());
        if (runs.kind == static_cast<uint64_t>(account.period)) // else others have another configuration by now
            end(account, runs, QuotaPeriodNumber(account.period, local_));
    }
    return moved();
}

bool Quotas::toSave(const int64_t every)
{
    auto before = table_.savedAt.load();
    const bool due = static_cast<uint64_t>(local_) - before >= static_cast<uint64_t>(every); // or it was set back
    if (table_.changed.load() == 0 || !due ||
            !table_.savedAt.compare_exchange_strong(before, static_cast<uint64_t>(local_)))
        return false;
    table_.changed.store(0);
    return true;
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
    if (account.shared == ledger::NoAccount)
        return r;
    r.passed = table_.accounts[account.shared].passed.load();
    std::vector<std::pair<int64_t, uint32_t>> all;
    eachUser(account, [&](const uint32_t place, const ledger::QuotaEntry &entry) {
        const auto bytes = ledger::BytesIn(table_, entry);
        r.users += bytes > 0;
        r.usersOver += bytes >= account.bytes;
        if (bytes > 0)
            all.push_back({bytes, place});
    });
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(), std::greater<>());
    std::for_each(all.begin(), end, [&](const auto &one) {
        r.most.push_back({ledger::NameOf(table_.entries[one.second]), one.first});
    });
    return r;
}

} // namespace msfrs
