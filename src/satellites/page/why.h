// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// "Why is it slow?", answered from the current state: by msfrs-page, and by msfrs-why for `msfrsctl why`.
#pragma once

#include "satellites/page/situation.h"

namespace msfrs::page {

/// The judgement behind the sentences; they differ by audience, it does not.
enum class Reason {
    Off,       ///< nothing is scheduled
    HasShare,  ///< requests wait because the user has its fair share already
    Waits,     ///< requests wait for a slot
    Unknown,   ///< no such user now
    Idle,      ///< the user requests nothing
    LinkFull,  ///< nothing waits, but the link is full
    Elsewhere, ///< nothing waits, and the link has room: the gateway is not what is slow
};
const char *CodeOf(Reason);

/// What a quota means for a user.
struct QuotaUse {
    const QuotaRow *quota;     ///< points into the Situation
    std::optional<double> had; ///< bytes in this period; nothing: not among the heaviest users, which Squid lists
    bool over;                 ///< exceeded; of a user that is not listed: perhaps, since quota->over serves it
};

struct Verdict {
    std::vector<std::string> why;      ///< the verdict, then the figures behind it, then what to do; never empty
    Reason reason = Reason::Off;
    double waiting = 0;                ///< waiting requests, listed or not
    std::vector<const HeldRow *> held; ///< those of them that Squid lists; point into the Situation
    std::vector<const User *> users;   ///< users in question, one for each class; point into the Situation
    std::vector<QuotaUse> quotas;      ///< that concern them
};

/// What a name may be. For an answer to a user itself only User: a host may have the same address, and what waits for
/// it belongs to others.
enum class Who { Anything, User };

/// \param name of a user; with Who::Anything otherwise of a host, a domain or a transaction with waiting requests
Verdict WhySlow(const Situation &, const std::string &name, Who = Who::Anything);

/// The meaning of Squid not answering at an address, and what to do.
std::string SilentText(const std::string &address);

} // namespace msfrs::page
