/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "msfrs/Gateway.h"
#include "msfrs/Snapshot.h"
#include "msfrs/WorkerLedger.h"

#include <algorithm>

namespace msfrs::squid
{

namespace
{

void
AddClass(ClassReport &to, const ClassReport &c)
{
    const auto [name, weight, users, queued, paused, inFlight, asked, resting, exchanges, requests, bytes, quanta,
                      refusedPerUser, refusedTotal, refusedAdmission, expired, excess, service, heldP50, heldP95,
                      heldP99, heldLately, bytesLately, heldCount, heldSum, unfinished] = c;
    to.users += users;
    to.queued += queued;
    to.paused += paused;
    to.inFlight += inFlight;
    to.asked += asked;
    to.resting += resting;
    to.exchanges += exchanges;
    to.requests += requests;
    to.bytes += bytes;
    to.quanta += quanta;
    to.refusedPerUser += refusedPerUser;
    to.refusedTotal += refusedTotal;
    to.refusedAdmission += refusedAdmission;
    to.expired += expired;
    to.excess += excess;
    to.service = std::max(to.service, service);
    to.heldP50 = std::max(to.heldP50, heldP50);
    to.heldP95 = std::max(to.heldP95, heldP95);
    to.heldP99 = std::max(to.heldP99, heldP99);
    to.heldLately += heldLately;
    to.bytesLately += bytesLately;
    to.heldCount += heldCount;
    to.heldSum += heldSum;
    to.unfinished += unfinished;
}

/// adds a row to the matching one, or appends it if there is none
template <class Row, class Same, class Add>
void
AddRow(std::vector<Row> &rows, const Row &row, Same same, Add add)
{
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row &other) { return same(other, row); });
    if (found == rows.end())
        rows.push_back(row);
    else
        add(*found, row);
}

void
AddUsers(std::vector<UserReport> &users, const std::vector<UserReport> &more)
{
    const auto same = [](const UserReport &a, const UserReport &b) {
        return a.name == b.name && a.className == b.className;
    };
    for (const auto &user: more) {
        AddRow(users, user, same, [](UserReport &to, const UserReport &u) {
            to.bytes += u.bytes;
            to.queued += u.queued;
            to.inFlight += u.inFlight;
        });
    }
    std::stable_sort(users.begin(), users.end(), [](const UserReport &a, const UserReport &b) {
        return a.bytes > b.bytes;
    });
}

/// the window of two snapshots, of which the first may have several workers already
WindowReport
Joined(const Snapshot &one, const Snapshot &other)
{
    auto joined = one.window.follows ? other.window : one.window;
    const auto &held = one.window.holding ? one.window : other.window;
    joined.holding = held.holding;
    if (held.holding)
        joined.because = held.because;
    if (one.parties.empty() && other.parties.empty()) {
        const auto ofOne = one.config.rate, ofOther = other.config.rate;
        joined.outstanding = one.window.outstanding + other.window.outstanding;
        joined.limit = one.window.limit + other.window.limit;
        const auto mean = [&](const double WindowReport::* const u) {
            return (one.window.*u * ofOne + other.window.*u * ofOther) / (ofOne + ofOther);
        };
        joined.utilisation = mean(&WindowReport::utilisation);
        joined.usedWhileFull = mean(&WindowReport::usedWhileFull);
        joined.full = one.window.full + other.window.full;
        joined.carriedWhileFull = one.window.carriedWhileFull + other.window.carriedWhileFull;
    }
    return joined;
}

} // namespace

void
Snapshot::add(const Snapshot &other)
{
    if (!other.scheduling) {
        failed = failed || other.failed;
        return;
    }
    if (!scheduling) {
        const auto sawFailure = failed;
        *this = other;
        failed = sawFailure;
        return;
    }
    window = Joined(*this, other);
    if (parties.empty() && other.parties.empty())
        config.rate += other.config.rate;
    excess.lines += other.excess.lines;
    excess.bytes += other.excess.bytes;
    excess.noClass += other.excess.noClass;
    excess.refused += other.excess.refused;
    if (excessSocket.empty())
        excessSocket = other.excessSocket;
    for (const auto &c: other.classes)
        AddRow(classes, c, [](const ClassReport &a, const ClassReport &b) { return a.name == b.name; }, AddClass);
    AddUsers(users, other.users);
    held.insert(held.end(), other.held.begin(), other.held.end());
    std::stable_sort(held.begin(), held.end(), [](const HeldReport &a, const HeldReport &b) {
        return a.waited > b.waited;
    });
    held.resize(std::min<size_t>(held.size(), MostHeld));
    if (other.now >= now && !other.parties.empty())
        parties = other.parties;
    if (alone.empty())
        alone = other.alone;
    now = std::max(now, other.now);
}

Snapshot
SnapshotOf(const Gateway * const gateway)
{
    Snapshot snapshot;
    const auto scheduler = gateway ? gateway->scheduler() : nullptr;
    snapshot.now = Gateway::Now();
    snapshot.scheduling = scheduler != nullptr;
    snapshot.failed = gateway && !scheduler;
    if (!scheduler)
        return snapshot;
    snapshot.config = scheduler->config();
    snapshot.window = scheduler->window();
    snapshot.excess = TheExcessCounts();
    if (const auto port = TheExcessPort())
        snapshot.excessSocket = port->path();
    snapshot.classes = scheduler->classes(snapshot.now);
    snapshot.held = scheduler->held(Snapshot::MostHeld, snapshot.now);
    snapshot.users = scheduler->topUsers(Snapshot::MostUsers);
    if (gateway->quotas.any()) {
        for (uint32_t n = 0; n < snapshot.classes.size(); ++n)
            snapshot.quotas.push_back(gateway->quotas.report(n, Snapshot::MostOfQuota));
    }
    snapshot.parties = PartiesOfLink(snapshot.now);
    snapshot.alone = WhyLinkIsNotShared();
    return snapshot;
}

} // namespace msfrs::squid
