// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Quotas that slow users down: each user of a class may have so many bytes in a period. Beyond them the user is moved
/// to another class until the period ends. The host reports what was charged and the local time; whenever a call
/// returns true, it moves requests to the class that classOf() returns.
///
/// What a user has in a class counts for that class alone. So a class that users are moved to may have a quota, too,
/// which begins with the first byte charged there.
///
/// Counts are in a table (ledger/quota_table.h), of this process alone or of all that share the link. In the latter
/// case each process counts what it serves, and whichever comes first checks the clock, loads the saved counts and
/// saves them. There is no leader, so nothing waits for a process that has died.
///
/// Only tick() reads the clock (see quota_period.h):
///   - It enters another period, in its course, by a step or by summer time: the period has ended, all begin from 0.
///   - It goes back: nothing ends. Counts continue until the end of the period that the clock shows then. So nobody
///     gets a quota twice by that, and nobody is slow for longer than a period. An hour that is repeated at the end of
///     summer time is one hour with one quota.
///   - It goes back by a few seconds: another process that shares the table has read it earlier.
#pragma once

#include "ledger/quota_table.h"
#include "quota/quota_period.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

/// A class and its quota.
struct QuotaClass {
    std::string name;                      ///< unique
    int64_t bytes = 0;                     ///< of each user in a period, > 0; 0: no quota
    QuotaPeriod period = QuotaPeriod::Day;
    std::string over;                      ///< class for users who have used it up; empty without a quota
};

/// A mistake in a quota.
struct QuotaFault {
    size_t cls;           ///< index of the class at fault
    std::string sentence; ///< what was found and what is allowed
};

/// Checks all classes together: each over= must name another class, and there must be no cycle.
std::optional<QuotaFault> CheckQuotas(const std::vector<QuotaClass> &);

/// A quota for reports.
struct QuotaReport {
    int64_t bytes = 0;                     ///< 0: the class has none, and the rest is not set
    QuotaPeriod period = QuotaPeriod::Day;
    std::string over;
    int64_t endsIn = 0;                    ///< s, until the period ends
    size_t users = 0;                      ///< users with any bytes in it
    size_t usersOver = 0;                  ///< of these: users who have used it up
    uint64_t passed = 0;                   ///< times that a user passed it, since the start
    struct User {
        std::string name;
        int64_t bytes;                     ///< in this period
    };
    std::vector<User> most;                ///< users with most bytes, in descending order
};

class Quotas {
public:
    /// Most users that are counted, in all classes together. Beyond them the user with the fewest bytes is dropped:
    /// filling the table with names cannot push out a user who has had much.
    static constexpr size_t MostUsers = ledger::QuotaTable::Entries;
    static constexpr size_t LongestUser = ledger::QuotaEntry::LongestName; ///< bytes of a name

    /// \param table holds the counts; others with the same classes may share it. It outlives this
    /// \param classes to which CheckQuotas() has no objection
    Quotas(ledger::QuotaTable &table, std::vector<QuotaClass> classes, int64_t local);

    /// Adopts other classes. Counts stay with classes whose names and kinds of period are the same.
    void configure(std::vector<QuotaClass>, int64_t local);

    /// Whether any class has a quota.
    bool any() const { return any_; }

    /// The class, by index, in which a user of class `cls` is served now.
    size_t classOf(size_t cls, std::string_view user) const;

    /// Registers a user for others who share the table: they may serve it, and know only keys.
    void enroll(size_t cls, std::string_view user);

    /// A user has had so many bytes, >= 0, in the class in which it was served.
    /// \returns whether users belong to other classes than at the previous call of this or tick(): these bytes passed
    /// the quota, or another process that shares the table has found so
    bool charge(size_t cls, std::string_view user, int64_t bytes);

    /// Call it about every second.
    /// \returns as charge(); true also if a period has ended in which anybody had passed a quota
    bool tick(int64_t local);

    /// \param most number of users that are named at most
    QuotaReport report(size_t cls, size_t most) const;

    /// Whether saved counts should be loaded: nobody who shares the table has done so.
    bool toLoad() const { return table_.loaded.load() == 0; }

    /// They have been loaded, or there are none that could be.
    void loaded() { table_.loaded.store(1); }

    /// Whether it is time to save; true for only one of those who share the table.
    /// \param every s
    bool toSave(int64_t every);

    /// All counts as text, for load().
    std::string save() const;

    /// Adds counts written by save() to the present ones. Skips counts of periods that have ended, of classes that have
    /// no such quota any more, and of users whose count was added in this period before. The text is not trusted.
    /// \throws std::runtime_error with a sentence that names the line; nothing has changed
    void load(std::string_view text);

private:
    struct Account : QuotaClass {
        size_t overIndex = 0;
        uint32_t shared = ledger::NoAccount; ///< index in the table
    };

    uint64_t keyOf(const Account &a, const std::string_view user) const { return ledger::UserKey(a.name, user); }
    uint32_t enter(const Account &, std::string_view user);
    void begin(Account &, int64_t number);
    bool end(const Account &, const ledger::PeriodWord &runs, int64_t number);
    bool moved();
    int64_t shown(int64_t local);
    /// Calls visit(place, entry) for all users of a class in the table.
    template <class Visit>
    void eachUser(const Account &account, const Visit &visit) const
    {
        ledger::EachCount(table_, [&](const uint32_t place, ledger::QuotaEntry &entry) {
            if (entry.account.load() == account.shared + 1)
                visit(place, entry);
        });
    }

    ledger::QuotaTable &table_;
    std::vector<Account> accounts_; ///< by index of the class
    bool any_ = false;
    int64_t local_;                 ///< latest time of the clock
    uint64_t moves_;                ///< of the table, as of the last call
};

} // namespace msfrs
