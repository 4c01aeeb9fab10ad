// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/why.h"

#include "satellites/page/ascii.h"
#include "satellites/page/words.h"

#include <algorithm>
#include <cstring>

namespace msfrs::page {

namespace {

constexpr double HasShare = 0.9; ///< part of a fair share that counts as all of it: tolerates a quantum

/// `1 of gold, 4 of bronze`: the classes with a nonzero count.
std::string ByClass(const GatewayState &gateway, double (*const count)(const ClassState &))
{
    std::string text;
    for (const auto &c : gateway.classes) {
        if (count(c) > 0)
            text += (text.empty() ? "" : ", ") + Fixed(count(c)) + " of " + c.name;
    }
    return text;
}

std::string Because(const ManagerReport &report)
{
    std::string all;
    for (const auto &text : report.because)
        all += (all.empty() ? "" : "; ") + text;
    return all;
}

/// Writes an answer, beginning with the verdict.
class Writer {
public:
    Writer(const Situation &now, const std::string &name, const Who who):
        now_(now), gateway_(now.gateway), name_(name)
    {
        find(who);
        findQuotas();
    }

    Verdict verdict()
    {
        const auto bypassed = std::find_if(now_.faults.begin(), now_.faults.end(), [](const Fault &fault) {
            return fault.code == "off" || fault.code == "unreachable";
        });
        if (bypassed != now_.faults.end()) {
            conclude(Reason::Off, "New connections of users go past Squid, so it neither holds nor speeds up any.");
        } else if (gateway_.scheduling) {
            sayVerdict();
            sayRefusals();
            sayShare();
            sayQuotas();
            sayRate();
            sayOthers();
            sayServer();
        } else {
            const auto because = Because(now_.report);
            conclude(Reason::Off, "Nothing is held here" + (because.empty() ? "" : ": " + because) + ".");
            todo_.emplace_back("msfrs on in squid.conf, then squid -k reconfigure; msfrsctl doctor says more.");
        }
        for (const auto &text : todo_)
            say("What to do: " + text);
        if (gateway_.scheduling)
            sayFigures();
        return std::move(answer_);
    }

private:
    void say(std::string text) { answer_.why.push_back(std::move(text)); }

    void conclude(const Reason reason, std::string text)
    {
        answer_.reason = reason;
        say(std::move(text));
    }

    /// Finds the users and requests in question.
    void find(Who);
    void findQuotas();
    void sayVerdict();
    std::string waiting() const;
    void sayShare();
    void sayQuotas();
    void sayRate();
    void sayOthers();
    void sayServer();
    void sayRefusals();
    void sayFigures();
    std::string command() const;

    const ClassState *classOf(const User &user) const
    {
        const auto *const cls = gateway_.find(user.row.cls);
        return cls && cls->weight > 0 && gateway_.capacity > 0 ? cls : nullptr;
    }
    /// Whether the user has current requests in this class, not only earlier ones.
    static bool active(const User &user)
    {
        return user.row.queued + user.row.inFlight > 0 || user.rate.value_or(0) > 0;
    }
    bool anyActive() const
    {
        return std::any_of(answer_.users.begin(), answer_.users.end(), [](const User *const u) { return active(*u); });
    }
    bool hasShare() const
    {
        // A class without current requests, since the user is in another one now, has no share for this user.
        const auto lacks = [&](const User *const u) {
            const auto *const cls = classOf(*u);
            return active(*u) && !(cls && u->rate && *u->rate >= HasShare * gateway_.fairShare(*cls));
        };
        return anyActive() && std::none_of(answer_.users.begin(), answer_.users.end(), lacks);
    }

    const Situation &now_;
    const GatewayState &gateway_;
    const std::string &name_;
    const char *about_ = "of this user";
    Verdict answer_;
    std::vector<std::string> todo_;
};

void Writer::find(const Who who)
{
    const auto lower = Lower(name_);
    const auto collect = [&](const char *const about, const auto &fits) {
        for (const auto &row : now_.report.held) {
            if (fits(row))
                answer_.held.push_back(&row);
        }
        about_ = about;
        return !answer_.held.empty();
    };
    answer_.users = now_.users.find(name_);
    bool user = collect("of this user", [&](const HeldRow &row) { return row.user == name_; }) ||
        !answer_.users.empty();
    if (!user && who == Who::Anything &&
        !collect("of this transaction", [&](const HeldRow &row) { return row.id == name_; }))
        collect("to this host", [&](const HeldRow &row) {
            const auto at = row.host.size() - std::min(row.host.size(), lower.size());
            return !lower.empty() && row.host.compare(at, row.host.npos, lower) == 0 &&
                (at == 0 || row.host[at - 1] == '.');
        });
    answer_.waiting = static_cast<double>(answer_.held.size());
    if (user && now_.report.held.size() >= MostListed) {
        double queued = 0;
        for (const auto *const known : answer_.users)
            queued += known->row.queued;
        answer_.waiting = std::max(answer_.waiting, queued);
    }
    const auto another = [&](const HeldRow *const row) { return row->user != answer_.held.front()->user; };
    if (!user && !answer_.held.empty() && std::none_of(answer_.held.begin(), answer_.held.end(), another))
        answer_.users = now_.users.find(answer_.held.front()->user);
}

/// `2 requests of this user wait for a turn, the longest for 2.5 s (a.example), and 1 download takes turns`. A download
/// does not wait while it is paused between two quanta.
std::string Writer::waiting() const
{
    const auto &held = answer_.held;
    const auto host = [](const HeldRow &row) { return row.host.empty() ? "" : " (" + row.host + ")"; };
    const auto paused = static_cast<double>(
        std::count_if(held.begin(), held.end(), [](const HeldRow *const row) { return !Waits(*row); }));
    const auto asked = answer_.waiting - paused; // unlisted ones count as requests
    const auto turns = Counted(paused, "download");
    if (asked <= 0)
        return turns + " " + about_ + (paused == 1 ? " takes turns" : " take turns") + host(*held.front());
    auto text = Counted(asked, "request") + " " + about_ + (asked == 1 ? " waits" : " wait") + " for a turn";
    const auto first = std::find_if(held.begin(), held.end(), [](const HeldRow *const row) { return Waits(*row); });
    if (first == held.end())
        text += ", but others wait longer";
    else
        text += (asked == 1 ? ", for " : ", the longest for ") + Seconds((*first)->waited) + host(**first);
    return text + (paused > 0 ? ", and " + turns + (paused == 1 ? " takes turns" : " take turns") : "");
}

void Writer::sayVerdict()
{
    const bool full = Used(now_) >= Full;
    if (answer_.waiting > 0 && hasShare()) {
        conclude(Reason::HasShare, waiting() + ": it has its share, and others have theirs.");
        todo_.emplace_back("to give this user more for an hour: msfrsctl set boost " + command() + " for 1h");
    } else if (answer_.waiting > 0) {
        conclude(Reason::Waits, waiting() + (full ? ": the link is full, and turns go by weight." : "."));
        if (!full)
            todo_.emplace_back("the link is not full, and still something waits; if that lasts longer than some "
                               "seconds, see msfrsctl doctor.");
    } else if (answer_.users.empty()) {
        conclude(Reason::Unknown, "Squid does not know this name now: it sent no request lately, or its traffic does "
                                  "not pass through Squid.");
        todo_.emplace_back("look for the name as msfrs counts users (msfrs_user; mostly the address), and whether "
                           "interception is in place: msfrsctl doctor.");
    } else if (!anyActive()) {
        conclude(Reason::Idle, "This user had no request at Squid a few seconds ago.");
        todo_.emplace_back("if a page is loading, it does not pass through Squid, or hangs before it: look at the "
                           "user's own network and resolver.");
    } else if (full || gateway_.utilisation >= Full) {
        conclude(Reason::LinkFull, std::string("No request of this user waits for a turn, but the link is full") +
                     (full ? "." : " just now."));
    } else {
        conclude(Reason::Elsewhere, "No request of this user waits for a turn, and the link is not full: the cause "
                                    "is the server, the path to it, or the network between user and gateway.");
        todo_.emplace_back("try another server; if all are slow, look at the user's own network.");
    }
}

/// States the fair share and the actual rate.
void Writer::sayShare()
{
    for (const auto *const user : answer_.users) {
        const auto *const cls = classOf(*user);
        if (!cls || (answer_.users.size() > 1 && !active(*user)))
            continue;
        const auto due = gateway_.fairShare(*cls) / gateway_.capacity;
        say("Share: its fair share by weight is " + Percent(due) + " of the link (class " + cls->name + ", weight " +
            Weight(cls->weight) + "); it received " +
            (user->rate ? Percent(*user->rate / gateway_.capacity) + " in the last " + Fixed(now_.users.over()) + " s."
                        : "an amount that is not measured yet."));
    }
}

/// The quotas that concern the users. The manager lists only the heaviest users of each; for any other one the class in
/// which the user is served must tell.
void Writer::findQuotas()
{
    const auto in = [&](const std::string &cls) {
        return std::any_of(answer_.users.begin(), answer_.users.end(),
                           [&](const User *const user) { return user->row.cls == cls; });
    };
    for (const auto &quota : now_.report.quotas) {
        const auto had = std::find_if(quota.most.begin(), quota.most.end(), [&](const QuotaRow::User &u) {
            return u.name == name_ ||
                std::any_of(answer_.users.begin(), answer_.users.end(),
                            [&](const User *const user) { return user->row.user == u.name; });
        });
        if (had != quota.most.end())
            answer_.quotas.push_back({&quota, had->bytes, had->bytes >= quota.bytes});
        else if (quota.usersOver > static_cast<double>(quota.most.size()) && in(quota.over))
            answer_.quotas.push_back({&quota, {}, true});
        else if (in(quota.cls))
            answer_.quotas.push_back({&quota, {}, false});
    }
}

void Writer::sayQuotas()
{
    for (const auto &[quota, had, over] : answer_.quotas) {
        const auto all = Size(quota->bytes) + " per " + quota->period + " of class " + quota->cls;
        if (had)
            say("Quota: " + Size(*had) + " of the " + all + " are used" +
                (over ? ", so class " + quota->over + " serves this user for another " + Duration(quota->endsIn) : "") +
                ".");
        else if (over)
            say("Quota: class " + quota->over + " serves those who have used the " + all + ".");
    }
}

void Writer::sayRate()
{
    std::string received;
    double rate = 0, due = 0;
    for (const auto *const user : answer_.users) {
        const auto *const cls = classOf(*user);
        rate += user->rate.value_or(0);
        if (cls && active(*user))
            due += gateway_.fairShare(*cls);
        if (user->rate)
            received = "this user receives " + RateText(rate) +
                (due > 0 ? ", its fair share is " + RateText(due) + "; " : "; ");
    }
    say("Rate: " + received + "the link carries " + Percent(Used(now_)) + " of its " +
        RateText(gateway_.capacity) + ".");
    if (answer_.waiting > 0 && Used(now_) >= Full && due > 0 && !received.empty() && rate < HasShare * due)
        todo_.emplace_back("this user has less than its share; if that lasts longer than a minute, see msfrsctl doctor "
                           "and docs/user/limits.md.");
}

void Writer::sayOthers()
{
    double users = 0, inFlight = 0;
    for (const auto &c : gateway_.classes) {
        users += c.users;
        inFlight += c.inFlight;
    }
    const auto served = ByClass(gateway_, [](const ClassState &c) { return c.inFlight; });
    std::string text = "Active now: " + Counted(users, "user");
    if (users > 0)
        text += " (" + ByClass(gateway_, [](const ClassState &c) { return c.users; }) + ")";
    const auto &held = now_.report.held;
    const auto waits = static_cast<double>(std::count_if(held.begin(), held.end(), Waits));
    text += "; " + std::string(held.size() < MostListed ? "" : "at least ") + Counted(waits, "request") +
        (waits == 1 ? " waits; " : " wait; ") + Counted(inFlight, "response") + " in progress";
    say(text + (served.empty() ? "" : " (" + served + ")") + ".");
    if (const auto past = PastSquid(now_)) {
        say(Percent(*past) + " of the link bypassed Squid in the last " + Fixed(PastOver) + " s.");
        todo_.emplace_back("msfrsctl setup, which configures msfrs-edge to hold what bypasses Squid to its share.");
    }
}

void Writer::sayServer()
{
    const auto queue = gateway_.queue.value_or(0), base = gateway_.base.value_or(0);
    if (base <= 0)
        return;
    say("Server: round trips take " + Seconds(base) +
        (!gateway_.queue         ? ""
             : queue < Instant ? ", and the queue at the provider adds nothing"
                               : ", and the queue at the provider adds " + Seconds(queue) + " to each") +
        ".");
    if (queue >= LongQueue)
        todo_.emplace_back("the queue at the provider is long: " + CauseOfQueue(now_));
}

/// The user as a word of a command line, or what to put there.
std::string Writer::command() const
{
    const auto plain = [](const char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || std::strchr(".:/@_+-", c);
    };
    const auto &user = answer_.users.empty() ? name_ : answer_.users.front()->row.user;
    return std::all_of(user.begin(), user.end(), [&](const char c) { return c && plain(c); }) ? user : "USER";
}

/// What only engineers need, last.
void Writer::sayFigures()
{
    const auto because = Because(now_.report);
    say("For engineers: " + (because.empty() ? "" : because + "; ") + Fixed(gateway_.outstanding) + " of " +
        Fixed(gateway_.limit, 2) + " slots are taken.");
}

void Writer::sayRefusals()
{
    for (size_t n = 0; n < now_.flow.classes.size() && n < gateway_.classes.size(); ++n) {
        const auto &cls = gateway_.classes[n].name;
        if (now_.flow.classes[n].refused > 0 &&
            std::any_of(answer_.users.begin(), answer_.users.end(),
                        [&](const User *const user) { return user->row.cls == cls; }))
            say("Requests of class " + cls + " are being refused: too many wait, or for too long.");
    }
}

} // namespace

std::string SilentText(const std::string &address)
{
    return "Squid at " + address + " does not answer: users have no web while their connections are sent to it. Start "
           "Squid (msfrsctl doctor looks for the cause); msfrsctl off sends users past it meanwhile.";
}

const char *CodeOf(const Reason reason)
{
    switch (reason) {
    case Reason::Off: return "off";
    case Reason::HasShare: return "has_share";
    case Reason::Waits: return "waits";
    case Reason::Unknown: return "unknown";
    case Reason::Idle: return "idle";
    case Reason::LinkFull: return "link_full";
    case Reason::Elsewhere: break;
    }
    return "elsewhere";
}

Verdict WhySlow(const Situation &now, const std::string &name, const Who who)
{
    return Writer(now, name, who).verdict();
}

} // namespace msfrs::page
