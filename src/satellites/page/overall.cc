// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/overall.h"

#include "satellites/page/words.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace msfrs::page {

namespace {

const Fault *Find(const Situation &now, const char *const code)
{
    const auto found =
        std::find_if(now.faults.begin(), now.faults.end(), [&](const Fault &f) { return f.code == code; });
    return found == now.faults.end() ? nullptr : &*found;
}

/// Whether msfrsctl prove turns scheduling off and on, by a rate that the link never reaches.
bool Testing(const Situation &now) { return Find(now, "test"); }

std::string LinkText(const Situation &now, const std::string &since)
{
    const auto used = Used(now);
    if (used >= Full)
        return "The link is full" + (since.empty() ? "" : " " + since) + ".";
    return used < 0.005 ? "The link is idle." : Percent(used) + " of the link is used.";
}

/// The longest wait of a request, s; they are in this order.
double Longest(const Situation &now)
{
    const auto &held = now.report.held;
    const auto first = std::find_if(held.begin(), held.end(), Waits);
    return first == held.end() ? 0 : first->waited;
}

/// `8 users wait, the longest for 1.4 s, all of class guests.`
std::string WaitingText(const Situation &now)
{
    const auto &held = now.report.held;
    std::map<std::string_view, std::set<std::string_view>> byClass;
    std::set<std::string_view> downloading;
    size_t users = 0;
    for (const auto &row : held) {
        if (Waits(row))
            users += byClass[row.cls].insert(row.user).second;
        else
            downloading.insert(row.user);
    }
    if (users == 0)
        return downloading.empty() ? "Nobody waits."
                                   : "Nobody waits; downloads of " +
                Counted(static_cast<double>(downloading.size()), "user") + " take turns.";
    auto text = (held.size() < MostListed ? "" : "At least ") + Counted(static_cast<double>(users), "user") +
        (users == 1 ? " waits, for " : " wait, the longest for ") + Seconds(Longest(now));
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

/// `4.9Mbit`, as in squid.conf.
std::string RateValue(const double rate)
{
    char text[32];
    std::snprintf(text, sizeof(text), "%.3g", rate / 1e6);
    return text + std::string("Mbit");
}

/// What is wrong with rate=; empty: nothing.
std::string RateTrouble(const Situation &now)
{
    const auto used = Used(now), rate = now.gateway.capacity;
    if (!now.gateway.metered || used < WrongRate || Testing(now))
        return {};
    return "rate= is too low: the link carried " + Percent(used) + " of " + RateText(rate) + " in the last " +
        Fixed(UsedOver) + " s. To do: msfrsctl set rate " + RateValue(0.98 * used * rate) + ".";
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
    if (Longest(now) > UsedOver && Used(now) < Full)
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

const char *CodeOf(const Light light)
{
    return light == Light::Red ? "red" : light == Light::Amber ? "amber" : "green";
}

Judgement Overall(const Situation &now, const std::string &since, const std::string &silent)
{
    if (const auto *const off = Find(now, "off"))
        return {Light::Red, off->text, off->code};
    if (!silent.empty())
        return {Light::Red, silent, "silent"};
    if (const auto *const unreachable = Find(now, "unreachable"))
        return {Light::Red, unreachable->text, unreachable->code};
    if (!now.gateway.scheduling)
        return {Light::Red, "Requests are not scheduled now: msfrs is off, or has failed; see cache.log.",
                "unscheduled"};
    if (const auto rate = RateTrouble(now); !rate.empty())
        return {Light::Amber, rate, "rate"};
    if (!now.faults.empty())
        return {Light::Amber, now.faults.front().text, now.faults.front().code};
    const auto trouble = TroubleText(now);
    const auto text = LinkText(now, since) + " " + WaitingText(now);
    if (!trouble.empty())
        return {Light::Amber, text + " " + trouble, "trouble"};
    // A page that waits longer than this is a matter of the rate or the number of users, not of msfrs; but not nothing.
    if (Longest(now) > UsedOver)
        return {Light::Amber, text, "waits"};
    return {Light::Green, text + " Nothing is wrong.", Used(now) >= Full ? "full" : "room"};
}

} // namespace msfrs::page
