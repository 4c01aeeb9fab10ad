/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_CHECKED_H
#define SQUID_SRC_MSFRS_READING_CHECKED_H

#include "plugin/msfrs_plugin.h"

#include <limits>
#include <list>

namespace msfrs::squid
{

/// Those of a process whose check(now) is called every Member::CheckEvery while there are any, by one timer.
template <class Member>
class Checked
{
public:
    using Place = typename std::list<Member *>::iterator;

    Place enlist(Member &member, const msfrs_time now)
    {
        if (members_.empty())
            nextCheck_ = now + Member::CheckEvery;
        return members_.insert(members_.end(), &member);
    }
    void forget(const Place place) { members_.erase(place); }

    void check(const msfrs_time now)
    {
        if (now < nextCheck())
            return;
        nextCheck_ = now + Member::CheckEvery;
        for (auto place = members_.begin(); place != members_.end(); )
            (*place++)->check(now); // which may forget itself
    }

    /// when check() is due
    msfrs_time nextCheck() const { return members_.empty() ? std::numeric_limits<msfrs_time>::max() : nextCheck_; }

private:
    std::list<Member *> members_;
    msfrs_time nextCheck_ = 0; ///< valid while there are any
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_CHECKED_H */
