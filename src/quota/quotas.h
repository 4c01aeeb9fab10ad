// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Quotas that slow: each user of a class may have so many bytes in a period. Beyond them the user goes on in another
/// class, until the period ends. The host says what was charged and what its clock shows; it moves requests to the
/// class that classOf() says whenever a call returns true.
///
/// What a user has in a class counts for that class alone. So a class to which others go may have a quota, too: it
/// begins with the first byte that is charged there.
///
/// The clock (see quota_period.h) is looked at in tick() alone:
///   - it goes on into another period, by itself, by a step or by summer time: the period has ended, all begin from 0
///   - it goes back: nothing ends. What was counted goes on to count, until the period ends that the clock shows then.
///     So nobody gets a quota twice by that, and nobody is slow for longer than a period. An hour that is had twice at
///     the end of summer time is one hour with one quota
#ifndef MSFRS_QUOTA_QUOTAS_H
#define MSFRS_QUOTA_QUOTAS_H

#include "quota/quota_period.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
    /// Users of one class that are counted. When one more comes, the half that has had least is forgotten, and would
    /// begin from 0: who fills the table with names cannot push out who has had much.
    static constexpr size_t MostUsers = 65536;
    static constexpr size_t LongestUser = 256; ///< bytes of a name in load()

    /// \param classes which CheckQuotas() has nothing against
    Quotas(std::vector<QuotaClass> classes, int64_t local);

    /// Takes other classes. Counts stay with classes whose names and kinds of period are the same.
    void configure(std::vector<QuotaClass>, int64_t local);

    /// Whether any class has a quota.
    bool any() const { return any_; }

    /// The class in which a user of the class `cls` is served now: an index, as that is.
    size_t classOf(size_t cls, std::string_view user) const;

    /// A user has had so many bytes, >= 0, in the class in which it was served.
    /// \returns whether these were the ones that passed the quota
    bool charge(size_t cls, std::string_view user, int64_t bytes);

    /// To be called every second or so.
    /// \returns whether a period has ended in which anybody had passed a quota
    bool tick(int64_t local);

    /// \param most users that are named at most
    QuotaReport report(size_t cls, size_t most) const;

    /// All counts as text, for load().
    std::string save() const;

    /// Takes counts that save() wrote, in place of those that there are. Those of periods that have ended, and of
    /// classes that have no such quota any more, are left out. The text is not trusted.
    /// \throws std::runtime_error with a sentence that names the line, and nothing has changed
    void load(std::string_view text);

private:
    struct Count {
        std::string user;
        int64_t bytes = 0;
    };
    using Counts = std::unordered_map<std::string_view, std::unique_ptr<Count>>; ///< by their own names

    struct Account : QuotaClass {
        size_t overIndex = 0;
        int64_t number = 0;  ///< of the period
        size_t usersOver = 0;
        uint64_t passed = 0;
        Counts counts;
    };

    static Count &CountOf(Counts &, std::string_view user);
    static void ForgetHalf(Account &);
    static void Recount(Account &);

    std::vector<Account> accounts_; ///< by index of the class
    bool any_ = false;
    int64_t local_;                 ///< what the clock showed last
};

} // namespace msfrs

#endif
