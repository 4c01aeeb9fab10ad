// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Quotas that slow: each user of a class may have so many bytes in a period. Beyond them the user goes on in another
/// class, until the period ends. The host says what was charged and what its clock shows; it moves requests to the
/// class that classOf() says whenever a call returns true.
///
/// What a user has in a class counts for that class alone. So a class to which others go may have a quota, too: it
/// begins with the first byte that is charged there.
///
/// Counts are in a table (ledger/quota_table.h), of this process alone, or of all who share the link: then each counts
/// what it serves, and whoever comes first looks at the clock, reads what was kept, and saves it. Nobody leads, so
/// nothing waits for anybody who has died.
///
/// The clock (see quota_period.h) is looked at in tick() alone:
///   - it goes on into another period, by itself, by a step or by summer time: the period has ended, all begin from 0
///   - it goes back: nothing ends. What was counted goes on to count, until the period ends that the clock shows then.
///     So nobody gets a quota twice by that, and nobody is slow for longer than a period. An hour that is had twice at
///     the end of summer time is one hour with one quota
///   - it goes back by a few seconds: that is who shares the table and has looked before others
#ifndef MSFRS_QUOTA_QUOTAS_H
#define MSFRS_QUOTA_QUOTAS_H

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
    int64_t bytes = 0;                     ///< of each user in a period, > 0; 0: there is none
    QuotaPeriod period = QuotaPeriod::Day;
    std::string over;                      ///< the class in which who has had them goes on; empty if there is no quota
};

/// A mistake in a quota.
struct QuotaFault {
    size_t cls;           ///< index of the class that is at fault
    std::string sentence; ///< what was found and what is allowed
};

/// What can only be said of all classes together: each over= names another class, and nobody is sent in a circle.
std::optional<QuotaFault> CheckQuotas(const std::vector<QuotaClass> &);

/// A quota for reports.
struct QuotaReport {
    int64_t bytes = 0;                     ///< 0: the class has none, and nothing of the rest is set
    QuotaPeriod period = QuotaPeriod::Day;
    std::string over;
    int64_t endsIn = 0;                    ///< s, until the period ends
    size_t users = 0;                      ///< who had anything in it
    size_t usersOver = 0;                  ///< of these: who had all
    uint64_t passed = 0;                   ///< how often a user passed it, since the start
    struct User {
        std::string name;
        int64_t bytes;                     ///< in this period
    };
    std::vector<User> most;                ///< who had most, the most first
};

class Quotas {
public:
    /// Users that are counted, of all classes together. When more come, who has had least goes: who fills the table
    /// with names cannot push out who has had much.
    static constexpr size_t MostUsers = ledger::QuotaTable::Entries;
    static constexpr size_t LongestUser = ledger::QuotaEntry::LongestName; ///< bytes of a name

    /// \param table where counts are, perhaps of others, too, who have the same classes. It outlives this
    /// \param classes which CheckQuotas() has nothing against
    Quotas(ledger::QuotaTable &table, std::vector<QuotaClass> classes, int64_t local);

    /// Takes other classes. Counts stay with classes whose names and kinds of period are the same.
    void configure(std::vector<QuotaClass>, int64_t local);

    /// Whether any class has a quota.
    bool any() const { return any_; }

    /// The class in which a user of the class `cls` is served now: an index, as that is.
    size_t classOf(size_t cls, std::string_view user) const;

    /// A user may be served by others who share the table and know keys alone: makes it known to them.
    void enroll(size_t cls, std::string_view user);

    /// A user has had so many bytes, >= 0, in the class in which it was served.
    /// \returns whether users belong into other classes than at the call before, of this or tick(): these bytes were
    /// the ones that passed the quota, or others who share the table have found so
    bool charge(size_t cls, std::string_view user, int64_t bytes);

    /// To be called every second or so.
    /// \returns the same as charge(); also if a period has ended in which anybody had passed a quota
    bool tick(int64_t local);

    /// \param most users that are named at most
    QuotaReport report(size_t cls, size_t most) const;

    /// Whether what was kept is to be read: nobody who shares the table has done so.
    bool toLoad() const { return table_.loaded.load() == 0; }

    /// It has been read, or there is none that could be.
    void loaded() { table_.loaded.store(1); }

    /// Whether it is time to save, which only one of those who share the table is told.
    /// \param every s
    bool toSave(int64_t every);

    /// All counts as text, for load().
    std::string save() const;

    /// Adds counts that save() wrote to those that there are. Those of periods that have ended, of classes that have
    /// no such quota any more, and of users whose count has been added in this period before, are left out. The text is
    /// not trusted.
    /// \throws std::runtime_error with a sentence that names the line, and nothing has changed
    void load(std::string_view text);

private:
    struct Account : QuotaClass {
        size_t overIndex = 0;
        uint32_t shared = ledger::NoAccount; ///< index in the table
    };

    uint64_t keyOf(const Account &a, const std::string_view user) const { return ledger::UserKey(a.name, user); }
    int64_t had(const Account &, std::string_view user) const;
    uint32_t enter(const Account &, std::string_view user);
    void begin(Account &, int64_t number);
    bool end(const Account &, const ledger::PeriodWord &runs, int64_t number);
    bool moved();
    int64_t shown(int64_t local);
    /// Calls visit(place, entry) for all users of a class that the table has.
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
    int64_t local_;                 ///< what the clock showed last
    uint64_t moves_;                ///< of the table, as of the last call
};

} // namespace msfrs

#endif
