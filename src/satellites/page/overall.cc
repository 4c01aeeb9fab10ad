// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/overall.h"

#include "satellites/page/words.h"

#include <map>
#include <set>

namespace msfrs::page {

namespace {

std::string LinkText(const Situation &now, const std::string &since)
{
    const auto used = Used(now);
    if (used >= Full)
        return "Full " + (since.empty() ? "just now" : since) + ".";
    return used < 0.005 ? "The link is idle." : Percent(used) + " of the link is used.";
}

/// `8 users wait, the longest for 1.4 s, all of class guests.`
std::string WaitingText(const Situation &now)
{
    const auto &held = now.report.held;
    if (held.empty())
        return "Nobody waits.";
    std::map<std::string_view, std::set<std::string_view>> byClass;
    size_t users = 0;
    for (const auto &row : held)
        users += byClass[row.cls].insert(row.user).second;
    auto text = (held.size() < MostListed ? "" : "At least ") + Counted(static_cast<double>(users), "user") +
        (users == 1 ? " waits, for " : " wait, the longest for ") + Seconds(held.front().waited);
    if (now.gateway.classes.size() < 2)
        return text + ".";
    const char *before = users == 1 ? ", of class " : ", all of class ";
    if (byClass.size() == 1)
        return text + before + std::string(byClass.begin()->first) + ".";
    before = ": ";
    for (const auto &[cls, names] : byClass) {
        text += before + std::to_string(names.size()) + " of " + std::string(cls);
        before = ", ";
    }
    return text + ".";
}

/// What an administrator should look at; empty: nothing.
std::string TroubleText(const Situation &now)
{
    std::string text;
    const auto add = [&](const std::string &sentence) { text += (text.empty() ? "" : " ") + sentence; };
    std::string refused;
    for (const auto &cls : now.refused)
        refused += (refused.empty() ? "" : ", ") + cls;
    if (!refused.empty())
        add("Requests of class " + refused + " were refused in the last minute: too many waited, or for too long.");
    const auto &held = now.report.held;
    if (!held.empty() && held.front().waited > UsedOver && Used(now) < Full)
        add("Requests wait although the link is not full: msfrsctl doctor looks for the cause.");
    if (const auto queue = now.gateway.queue.value_or(0); queue >= LongQueue)
        add("The queue at the provider delays everything by " + Seconds(queue) + ": " + CauseOfQueue(now));
    if (const auto past = PastSquid(now))
        add(Percent(*past) + " of the link bypasses Squid.");
    return text;
}

} // namespace

size_t MinutesFull(const std::vector<float> &utilisation, const size_t perMinute)
{
    size_t minutes = 0;
    for (auto end = utilisation.size(); end >= perMinute; end -= perMinute, ++minutes) {
        double sum = 0; // NaN if a slot is unknown, and then not full
        for (auto n = end - perMinute; n < end; ++n)
            sum += utilisation[n];
        if (!(sum >= Full * static_cast<double>(perMinute)))
            break;
    }
    return minutes;
}

std::string Overall(const Situation &now, const std::string &since)
{
    if (!now.gateway.scheduling)
        return "Requests are not scheduled now: msfrs is off, or has failed; see cache.log.";
    const auto trouble = TroubleText(now);
    return LinkText(now, since) + " " + WaitingText(now) + " " + (trouble.empty() ? "Nothing is wrong." : trouble);
}

} // namespace msfrs::page
