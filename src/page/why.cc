// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/why.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace msfrs::page {

namespace {

constexpr double Full = 0.9;        ///< share of the link from which on it counts as full
constexpr double LongQueue = 0.1;   ///< s at the provider that a user notices
constexpr double MuchBeside = 0.25; ///< share of the link that traffic beside Squid has

std::string Percent(const double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string Seconds(const double seconds)
{
    char text[32];
    std::snprintf(text, sizeof(text), seconds < 1 ? "%.0f ms" : "%.1f s", seconds < 1 ? 1000 * seconds : seconds);
    return text;
}

std::string Counted(const size_t n, const char *const one, const char *const several)
{
    return std::to_string(n) + " " + (n == 1 ? one : several);
}

/// What of a user waits. \returns whether anything does
bool SayWaits(const Situation &now, const std::string &user, std::vector<std::string> &said)
{
    size_t asked = 0, paused = 0;
    const HeldRow *longest = nullptr;
    for (const auto &row : now.report.held) {
        if (row.user != user)
            continue;
        longest = longest ? longest : &row; // they are in that order
        (row.what == "response" ? paused : asked) += 1;
    }
    double queued = 0;
    for (const auto *const known : now.users.find(user))
        queued += known->row.queued;
    if (longest) {
        std::string text;
        if (asked)
            text = Counted(asked, "request", "requests");
        if (paused)
            text += (asked ? " and " : "") + Counted(paused, "response", "responses");
        said.push_back(text + (asked + paused == 1 ? " of this user waits" : " of this user wait") +
                       " for a turn on the link, the longest for " + Seconds(longest->waited) + " (" + longest->host +
                       ").");
    } else if (queued > 0) {
        said.push_back("Requests of this user wait for a turn on the link, but others wait longer.");
    }
    return longest || queued > 0;
}

void SayShare(const Situation &now, const User &user, const bool waits, std::vector<std::string> &said)
{
    const auto *const cls = now.gateway.find(user.row.cls);
    if (!cls || !(cls->weight > 0))
        return;
    const auto share = now.gateway.fairShare(*cls), rate = user.rate.value_or(0);
    char weight[32];
    std::snprintf(weight, sizeof(weight), "%g", cls->weight);
    double users = 0;
    for (const auto &c : now.gateway.classes)
        users += c.users;
    said.push_back("Class " + cls->name + " has weight " + weight + ". " +
                   Counted(static_cast<size_t>(users), "user wants", "users want") +
                   " something now; by weight this user's share of the link is " + RateText(share) +
                   ", and it receives " + RateText(rate) + ".");
    if (waits && rate >= 0.9 * share)
        said.push_back("It has its share: it waits because the others have theirs.");
}

std::string Size(double bytes)
{
    constexpr const char *Units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1023.5 && unit + 1 < std::size(Units); ++unit)
        bytes /= 1024;
    char text[32];
    std::snprintf(text, sizeof(text), bytes < 9.95 && unit ? "%.1f %s" : "%.0f %s", bytes, Units[unit]);
    return text;
}

std::string Duration(const double seconds)
{
    const auto minutes = static_cast<size_t>(seconds / 60), hours = minutes / 60;
    return hours >= 48 ? Counted(hours / 24, "day", "days")
        : hours        ? std::to_string(hours) + " h " + std::to_string(minutes % 60) + " min"
                       : std::to_string(minutes) + " min";
}

/// Whether the user goes on in another class, since a quota is used up. The manager names only those who had most: for
/// another one it is said for what the class is there.
void SayQuotas(const Situation &now, const std::string &user, std::vector<std::string> &said)
{
    const auto rows = now.users.find(user);
    for (const auto &quota : now.report.quotas) {
        const auto had = std::find_if(quota.most.begin(), quota.most.end(),
                                      [&](const QuotaRow::User &u) { return u.name == user; });
        if (had != quota.most.end() && had->bytes >= quota.bytes)
            said.push_back("This user has had " + Size(had->bytes) + ", and a user of class " + quota.cls +
                           " may have " + Size(quota.bytes) + " in a " + quota.period + ": it goes on in class " +
                           quota.over + " for another " + Duration(quota.endsIn) + ".");
        else if (had == quota.most.end() && quota.usersOver > static_cast<double>(quota.most.size()) &&
                 std::any_of(rows.begin(), rows.end(), [&](const User *const u) { return u->row.cls == quota.over; }))
            said.push_back("In class " + quota.over + " go on those who have had the " + Size(quota.bytes) +
                           " that a user of class " + quota.cls + " may have in a " + quota.period + ".");
    }
}

void SayLink(const GatewayState &gateway, const bool waits, std::vector<std::string> &said)
{
    const bool full = gateway.utilisation >= Full;
    if (full || !waits)
        said.push_back(std::string(full ? "The link is full (" : "The link is not full (") +
                       Percent(gateway.utilisation) + " of " + RateText(gateway.capacity) + ").");
    if (gateway.queue && *gateway.queue >= LongQueue)
        said.push_back("The queue at the provider adds " + Seconds(*gateway.queue) + " to every answer.");
    if (gateway.own && gateway.utilisation - *gateway.own >= MuchBeside)
        said.push_back("Traffic that does not pass through Squid has " + Percent(gateway.utilisation - *gateway.own) +
                       " of the link.");
}

void SayRefusals(const Situation &now, const std::string &cls, std::vector<std::string> &said)
{
    for (size_t n = 0; n < now.flow.classes.size() && n < now.gateway.classes.size(); ++n) {
        if (now.gateway.classes[n].name == cls && now.flow.classes[n].refused > 0)
            said.push_back("Requests of class " + cls + " are being refused: too many wait, or for too long.");
    }
}

} // namespace

std::string RateText(const double rate)
{
    constexpr const char *Units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
    size_t unit = 0;
    double shown = rate;
    for (; shown >= 999.5 && unit + 1 < std::size(Units); ++unit)
        shown /= 1000;
    char text[32];
    std::snprintf(text, sizeof(text), shown < 9.95 && unit ? "%.1f %s" : "%.0f %s", shown, Units[unit]);
    return text;
}

std::vector<std::string> WhySlow(const Situation &now, const std::string &user)
{
    std::vector<std::string> said;
    if (!now.gateway.scheduling) {
        said.emplace_back("Requests are not scheduled now: each goes out at once.");
        return said;
    }
    const bool waits = SayWaits(now, user, said);
    const auto rows = now.users.find(user);
    if (!waits) {
        said.emplace_back(rows.empty()
                              ? "Squid knows no user of this name now: nothing was asked for lately, or the traffic "
                                "does not pass through Squid."
                              : "Nothing of this user waits here. What is slow is the server, the way to it, or the "
                                "network between user and gateway.");
    }
    for (const auto *const row : rows) {
        SayShare(now, *row, waits, said);
        SayRefusals(now, row->row.cls, said);
    }
    SayQuotas(now, user, said);
    SayLink(now.gateway, waits, said);
    return said;
}

} // namespace msfrs::page
