// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/sharing.h"

#include "plugin/number.h"

#include <algorithm>
#include <cmath>

namespace msfrs::share {

namespace {

constexpr double Second = 1e9;
constexpr int64_t Overdue = 3; ///< intervals after which a message is overdue: one in time is up to two old
/// Messages until an unknown gateway counts as known. The first one may be as old as the store's outage, and so may the
/// growth up to the next one.
constexpr unsigned Known = 2;
/// More than any link carries between two messages: counts that grow by more were reset.
constexpr uint64_t MostGrowth = uint64_t{1} << 40;

double Seconds(const int64_t t) { return static_cast<double>(t) / Second; }
std::string SecondsText(const int64_t t) { return Number(std::round(Seconds(t) * 10) / 10) + " s"; }

uint64_t Growth(const uint64_t before, const uint64_t after)
{
    const auto growth = after - before; // counts may wrap
    return growth < MostGrowth ? growth : 0;
}

double Served(const Sums &s)
{
    uint64_t sum = 0;
    for (const auto &c : s.classes)
        sum += c.served;
    return static_cast<double>(sum);
}

} // namespace

const char *StoreStateText(const StoreState state)
{
    switch (state) {
    case StoreState::Together: return "together";
    case StoreState::Last: return "last";
    case StoreState::Static: break;
    }
    return "static";
}

Sharing::Sharing(const SharingParams &params, Board &board, Store &store, StateLog::Log log, const uint64_t life,
                 const int64_t now):
    params_(params), board_(board), store_(store), log_(std::move(log)), life_(life),
    fairShares_(params.others.size() + 1), next_(now), lastAnswer_(now), lastShown_(now), localAt_(now),
    local_(board.local(now))
{
    for (const auto &name : params.others) {
        others_.emplace_back();
        others_.back().name = name;
        others_.back().leads = name < params.gateway;
    }
}

int64_t Sharing::tick(const int64_t now)
{
    if (underWay_ && now - asked_ >= Patience) {
        store_.abandon();
        failed("no answer within " + SecondsText(Patience), now);
    }
    if (!underWay_ && now >= next_)
        ask(now);
    if (now - lastShown_ >= params_.interval)
        settle(now);
    return std::min(underWay_ ? asked_ + Patience : next_, lastShown_ + params_.interval);
}

const Sums &Sharing::local(const int64_t now)
{
    if (now - localAt_ >= params_.interval / 2) {
        auto next = board_.local(now);
        served_ += std::max(Served(next) - Served(local_), 0.0);
        local_ = std::move(next);
        localAt_ = now;
    }
    return local_;
}

void Sharing::ask(const int64_t now)
{
    Sums sums = local(now);
    sums.life = life_;
    sums.number = ++number_;
    const auto message = EncodeMessage(sums);
    messageBytes_ = message.size();
    users_ = std::min(sums.users.size(), MostUsers);
    underWay_ = true;
    asked_ = now;
    ++exchanges_;
    store_.exchange(message, [this](const Store::Answer &answer, const int64_t at) { answered(answer, at); });
}

void Sharing::answered(const Store::Answer &answer, const int64_t now)
{
    if (!answer.failure.empty() || answer.messages.size() != others_.size() + 1) {
        failed(answer.failure.empty() ? "an answer without the requested keys" : answer.failure, now);
        return;
    }
    underWay_ = false;
    took_ = Seconds(now - asked_);
    next_ = std::max(asked_ + params_.interval, now);
    if (state_ != StoreState::Together)
        together_ = now;
    outage_ = now - lastAnswer_;
    lastAnswer_ = now;
    failure_.clear();
    everAnswered_ = true;
    findNamesake(answer.messages[0], now);
    for (size_t n = 0; n < others_.size(); ++n) {
        others_[n].refused = false;
        if (answer.messages[n + 1])
            heard(others_[n], *answer.messages[n + 1], now);
    }
    settle(now);
}

void Sharing::failed(const std::string &why, const int64_t now)
{
    underWay_ = false;
    ++failures_;
    failure_ = why;
    next_ = now + RetryAfter;
    settle(now);
}

void Sharing::findNamesake(const std::optional<std::string> &message, const int64_t now)
{
    std::string why;
    const auto found = message ? DecodeMessage(*message, why) : std::nullopt;
    if (!found || found->life == life_)
        namesake_ = 0;
    else if (namesake_ == 0)
        namesake_ = now; // may be our own message from before a restart
    else if (now - namesake_ >= TimeToLive)
        log_.say("gateway " + params_.gateway,
                 "another msfrs-share uses this name; give each gateway its own", now);
}

void Sharing::heard(Other &other, const std::string &message, const int64_t now)
{
    std::string why;
    auto sums = DecodeMessage(message, why);
    if (!sums) {
        other.refused = true;
        ++other.refusals;
        log_.say("gateway " + other.name, "its message is ignored: it " + why, now);
        return;
    }
    if (other.last && other.last->life == sums->life) {
        if (sums->number <= other.last->number)
            return; // no new message
        if (other.news >= Known) {
            const auto growth = static_cast<double>(Growth(other.last->received, sums->received));
            const double took = Seconds(now - other.heard);
            if (took > 0)
                other.speed += (growth / took - other.speed) * std::min(took, 1.0);
            const auto added = static_cast<uint64_t>(std::max(growth - other.ahead, 0.0));
            other.received += added;
            other.own += std::min(added, Growth(other.last->own, sums->own));
            other.ahead = std::max(other.ahead - growth, 0.0);
            other.served += std::max(Served(*sums) - Served(*other.last), 0.0);
        }
    } else {
        other.speed = other.ahead = 0;
        // It has no balances yet. If this gateway kept its own, they would disagree on which is ahead, and slots would
        // stay free.
        fairShares_ = FairShares(others_.size() + 1);
    }
    ++other.news;
    other.last = std::move(sums);
    other.heard = now;
}

StoreState Sharing::stateAt(const int64_t now) const
{
    if (now - lastAnswer_ >= TimeToLive)
        return StoreState::Static;
    return failure_.empty() && everAnswered_ ? StoreState::Together : StoreState::Last;
}

bool Sharing::here(const Other &other, const int64_t now) const
{
    return other.last && now - other.heard < TimeToLive;
}

void Sharing::settle(const int64_t now)
{
    const auto state = stateAt(now);
    if (state != state_ && state == StoreState::Together)
        log_.say(params_.store, state_ == StoreState::Static ? "answers, after " + SecondsText(outage_) : "answers",
                 now);
    else if (state != state_ && state == StoreState::Last)
        log_.say(params_.store, failure_ + "; the last shares hold for " + SecondsText(TimeToLive), now);
    else if (state != state_)
        log_.say(params_.store, "no answer for " + SecondsText(TimeToLive) +
                 (failure_.empty() ? "" : " (" + failure_ + ")") + "; this gateway keeps to its static share of " +
                 Number(params_.share * 100) + " % of the link", now);
    state_ = state;
    log_.tick(now);
    showAll(now);
    lastShown_ = now;
}

bool Sharing::gone(const Other &other, const int64_t now) const
{
    if (state_ == StoreState::Last)
        return everAnswered_ && !other.shownNow;
    // A gateway that lost the store together with us returns to it slightly before or after us.
    return state_ == StoreState::Together && now - together_ >= TimeToLive;
}

void Sharing::showAll(const int64_t now)
{
    const auto &ours = local(now);
    // If this process was stopped, the traffic meanwhile is unknown.
    const double passed = now - lastShown_ < TimeToLive ? Seconds(std::max<int64_t>(now - lastShown_, 0)) : 0;
    bool fresh = state_ == StoreState::Together;
    for (size_t n = 0; n < others_.size(); ++n) {
        auto &other = others_[n];
        const bool counted = other.counts;
        other.counts = other.news >= Known && state_ != StoreState::Static && here(other, now);
        if (other.counts && !counted && other.shownNow)
            board_.hide(n); // the values shown are no base for its counts: see showRest()
        if (counted && !other.counts)
            other.news = 0;
        fresh &= !other.counts || !overdue(other, now);
    }
    // Without the others' bytes, ours alone do not show who is ahead: they are kept until messages arrive.
    const auto taken = [&](double &served) {
        const double bytes = fresh ? served : 0;
        if (fresh || state_ == StoreState::Static)
            served = 0;
        return bytes;
    };
    std::vector<Claim> claims{
        {ours.demand, static_cast<double>(ours.places), static_cast<double>(ours.waiting), taken(served_)}};
    double limit = ours.limit;
    const Other *leader = nullptr;
    for (auto &other : others_) {
        // A gateway without a rate has no party that measures.
        if (other.counts && other.leads && other.last->rate > 0 && (!leader || other.name < leader->name)) {
            leader = &other;
            limit = other.last->limit;
        }
        const Sums sums = other.counts ? *other.last : Sums();
        claims.push_back(
            {sums.demand, static_cast<double>(sums.places), static_cast<double>(sums.waiting), taken(other.served)});
    }
    const auto due = fairShares_.places(claims, limit, ours.rate, passed);
    for (size_t n = 0; n < others_.size(); ++n) {
        auto &other = others_[n];
        if (other.counts) {
            if (overdue(other, now))
                bridge(other, now);
            const auto &claim = claims[n + 1];
            const double places = claim.waiting > 0 ? due[n + 1] : std::min(due[n + 1], claim.places);
            show(n, *other.last, places, &other == leader, now);
            if (state_ == StoreState::Together && !other.refused)
                log_.say("gateway " + other.name, "is present", now);
        } else if (gone(other, now)) {
            if (other.shownNow)
                board_.hide(n);
            other.shownNow = false;
            other.ahead = 0;
            other.places = 0;
            if (state_ == StoreState::Together && !other.refused)
                log_.say("gateway " + other.name, other.last ? "is gone: no message for " + SecondsText(TimeToLive)
                                                             : "has not reported yet", now);
        } else {
            showRest(n, ours, passed, now);
        }
    }
}

bool Sharing::overdue(const Other &other, const int64_t now) const
{
    return state_ == StoreState::Last || now - other.heard >= Overdue * params_.interval;
}

void Sharing::bridge(Other &other, const int64_t now)
{
    const double since = other.speed * Seconds(now - other.heard);
    guess(other, std::max(since - other.ahead, 0.0));
    other.ahead = std::max(other.ahead, since);
}

void Sharing::guess(Other &other, const double bytes)
{
    other.received += static_cast<uint64_t>(bytes);
    other.own += static_cast<uint64_t>(bytes);
}

/// While a gateway is unknown, the others divide the link without it. Its charges from that time cannot be compensated
/// later: charged at once, they would put its heaviest users so far ahead that they would get no service here for
/// longer than the outage took. So once the gateway is known again it is shown as a new party, whose counts have no
/// base.
void Sharing::showRest(const size_t n, const Sums &ours, const double passed, const int64_t now)
{
    auto &other = others_[n];
    const double part = (1 - params_.share) / static_cast<double>(others_.size());
    Sums rest;
    rest.limit = ours.limit;
    rest.rate = ours.rate;
    rest.utilisation = ours.utilisation;
    rest.queue = ours.queue;
    rest.demand = std::min(ours.demand * part / params_.share, MostDemand);
    guess(other, ours.rate / 8 * part * passed);
    other.ahead = 0;
    show(n, rest, ours.limit * part, false, now);
}

void Sharing::show(const size_t n, Sums sums, const double places, const bool leads, const int64_t now)
{
    auto &other = others_[n];
    const double wanted = places + other.owed;
    other.places = sums.places = static_cast<uint64_t>(wanted);
    other.owed = wanted - static_cast<double>(sums.places); // so that fractions are kept on average
    sums.received = other.received;
    sums.own = other.own;
    board_.show(n, sums, leads, now);
    other.shownNow = true;
}

SharingReport Sharing::report(const int64_t now) const
{
    SharingReport r;
    r.state = state_;
    r.failure = failure_;
    r.exchanges = exchanges_;
    r.failures = failures_;
    r.took = took_;
    r.sinceAnswer = Seconds(now - lastAnswer_);
    r.messageBytes = messageBytes_;
    r.users = users_;
    for (const auto &other : others_) {
        OtherReport o;
        o.name = other.name;
        o.here = here(other, now);
        if (other.last) {
            o.age = Seconds(now - other.heard);
            o.places = other.last->places;
            o.waiting = other.last->waiting;
            o.demand = other.last->demand;
        }
        o.shown = other.places;
        o.received = other.received;
        o.refused = other.refusals;
        r.others.push_back(std::move(o));
    }
    return r;
}

} // namespace msfrs::share
