// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/migrate.h"

#include "engine/engine_records.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace msfrs {

namespace {

bool Same(const msfrs_plugin &a, const msfrs_plugin &b)
{
    return a.keeps > 0 && a.keeps == b.keeps && std::strcmp(a.name, b.name) == 0;
}

const char *NameOf(const msfrs_owner &whose)
{
    return whose.item ? "an item" : whose.flow ? "a flow" : whose.cls ? "a class" : "the instance";
}

} // namespace

class Migration {
public:
    Migration(Engine &from, Engine &to, const MigrationPlan &plan, const msfrs_time now):
        from_(from), to_(to), plan_(plan), plugin_(from.scheduler()), now_(to.at(from.at(now)))
    {
        to_.nextId_ = from_.nextId_; // existing items keep their numbers
        for (const auto *const c : from_.classes()) {
            for (auto *const next : to_.classes()) {
                if (std::strcmp(c->name, next->name) == 0 && !((c->flags ^ next->flags) & MSFRS_INTERIOR))
                    heirs_[c] = next;
            }
        }
    }

    void run()
    {
        gather();
        if (Same(plugin_, to_.scheduler()))
            save();
        try {
            for (const auto &kept : kept_) {
                const auto &whose = kept.whose;
                msfrs_owner next{};
                next.cls = whose.cls ? heir(*whose.cls) : nullptr;
                next.flow = whose.flow ? heir(*whose.flow) : nullptr;
                const bool instance = !whose.cls && !whose.flow && !whose.item;
                if (next.cls || next.flow || instance)
                    restore(kept, next);
            }
            place();
            for (auto &m : moving_) {
                if (m.resumes)
                    resume(m);
            }
            restoreItems();
            for (auto &m : moving_) {
                if (!m.resumes)
                    arrive(m);
            }
        } catch (...) {
            for (const auto &m : moving_) { // an engine cannot be freed with anything in service
                if (m.served && m.after)
                    to_.done(*m.after, now_);
            }
            throw;
        }
        for (const auto &m : moving_) {
            if (m.served)
                from_.done(*m.before, now_);
            plan_.moved(*m.after);
        }
    }

private:
    /// Figures that were put for one owner.
    struct Kept {
        msfrs_owner whose; ///< in from_
        size_t begin;      ///< in figures_
        uint32_t n;
    };
    struct Moving {
        msfrs_item *before;
        MigrationPlan::Place place;
        bool served;
        bool resumes;              ///< it keeps its position
        msfrs_item *after = nullptr;
    };

    bool sees(const msfrs_class &c) const { return !(c.flags & MSFRS_INTERIOR) || (plugin_.flags & MSFRS_HIERARCHY); }
    msfrs_class *heir(const msfrs_class &c) const
    {
        const auto found = heirs_.find(&c);
        return found == heirs_.end() ? nullptr : found->second;
    }

    void gather()
    {
        for (auto *const c : from_.classes()) {
            if (sees(*c))
                classes_.push_back(c);
            from_.eachFlow(*c, [&](const NamedFlow &f) {
                flows_.push_back(const_cast<NamedFlow *>(&f)); // owned by from_, which is mutable here
                for (auto *i = f.head; i; i = i->next)
                    moving_.push_back({i, {}, false, false});
            });
        }
        for (auto *const i : plan_.served)
            moving_.push_back({i, {}, true, false});
        std::sort(moving_.begin(), moving_.end(),
                  [](const Moving &a, const Moving &b) { return a.before->seq < b.before->seq; });
    }

    static void Put(void *const self, const msfrs_owner *const whose, const double *const figures, const uint32_t n)
    {
        auto &migration = *static_cast<Migration *>(self);
        if (!migration.fault_.empty())
            return;
        try {
            migration.fault_ = migration.put(*whose, figures, n);
        } catch (const std::bad_alloc &) {
            migration.fault_ = "more figures than there is memory for";
        }
    }

    /// \returns the fault, empty if there is none
    std::string put(const msfrs_owner &whose, const double *const figures, const uint32_t n)
    {
        const int owners = (whose.cls != nullptr) + (whose.flow != nullptr) + (whose.item != nullptr);
        if (owners > 1)
            return "figures of " + std::to_string(owners) + " owners at once";
        const auto stranger = [this](const void *const owner) { return owner && known_.count(owner) == 0; };
        if (stranger(whose.cls) || stranger(whose.flow) || stranger(whose.item))
            return std::string("figures of ") + NameOf(whose) + " that does not exist";
        if (n < 1 || n > MSFRS_MOST_KEPT) {
            return std::to_string(n) + " figures of " + NameOf(whose) + "; allowed are 1 to " +
                   std::to_string(MSFRS_MOST_KEPT);
        }
        if (kept_.size() > known_.size()) // one more is the instance
            return "figures of more owners than exist";
        for (uint32_t k = 0; k < n; ++k) {
            if (!std::isfinite(figures[k]))
                return "figure " + std::to_string(k) + " of " + NameOf(whose) + ", which is not finite";
        }
        kept_.push_back({whose, figures_.size(), n});
        figures_.insert(figures_.end(), figures, figures + n);
        return {};
    }

    void save()
    {
        known_.insert(classes_.begin(), classes_.end());
        known_.insert(flows_.begin(), flows_.end());
        for (const auto &m : moving_)
            known_.insert(m.before);
        const auto count = [](const auto &all) { return static_cast<uint32_t>(all.size()); };
        const msfrs_move move{this, Put,
                              classes_.data(), count(classes_),
                              flows_.data(), count(flows_),
                              plan_.served.data(), count(plan_.served)};
        plugin_.sched->save(from_.schedState_, &move, now_);
        if (!fault_.empty())
            FailPlugin(plugin_, "save gave " + fault_);
    }

    /// Created if it does not exist.
    msfrs_flow *heir(const msfrs_flow &before) const
    {
        auto *const c = plan_.sameFlows ? heir(*before.cls) : nullptr;
        if (!c)
            return nullptr;
        auto &after = to_.flow(*c, static_cast<const NamedFlow &>(before).name(), before.weight);
        takeOver(before, after);
        return &after;
    }

    bool goesOn(const msfrs_flow &before, const msfrs_flow &after) const
    {
        return plan_.sameFlows && heir(*before.cls) == after.cls &&
               static_cast<const NamedFlow &>(before).name() == static_cast<const NamedFlow &>(after).name();
    }

    /// Copies the engine's own figures.
    void takeOver(const msfrs_flow &before, msfrs_flow &after) const
    {
        const auto &old = static_cast<const NamedFlow &>(before);
        auto &next = static_cast<NamedFlow &>(after);
        next.account->bytes = old.account->bytes;
        next.idleSince = old.idleSince;
        next.owed = old.owed;
        next.lag = old.lag;
    }

    void restore(const Kept &kept, const msfrs_owner &whose) const
    {
        if (to_.schedOps_->restore(to_.schedState_, &whose, &figures_[kept.begin], kept.n, now_) != 0)
            FailPlugin(to_.scheduler(), std::string("restore refuses the figures that save gave for ") + NameOf(whose));
    }

    /// Decides where each item goes. Items that join a flow with others do so in order of arrival, to keep the flow's
    /// order; then none of its queued items resumes.
    void place()
    {
        const bool same = Same(plugin_, to_.scheduler());
        std::unordered_set<const msfrs_flow *> joined;
        for (auto &m : moving_) {
            m.place = plan_.place(*m.before);
            const bool stays = goesOn(*m.before->flow, *m.place.flow);
            if (stays)
                takeOver(*m.before->flow, *m.place.flow);
            else if (!m.served)
                joined.insert(m.place.flow);
            m.resumes = same && stays;
            for (uint32_t r = 0; m.served && r < to_.resources_; ++r)
                m.place.est[r] = r < from_.resources_ ? from_.unused(*m.before, r) : 0;
        }
        for (auto &m : moving_)
            m.resumes = m.resumes && (m.served || joined.count(m.place.flow) == 0);
    }

    void resume(Moving &m) const
    {
        const auto &before = *m.before;
        auto &item = *to_.createItem(*m.place.flow, m.place.est.data(), before.host, now_);
        item.attained = before.attained;
        item.remaining = before.remaining;
        item.flags = before.flags;
        to_.enterQueue(item, now_);
        item.id = before.id;
        item.seq = before.seq;
        item.enqueued = before.enqueued;
        if (m.served) {
            to_.leaveQueue(item, now_);
            to_.beginService(item);
        }
        m.after = &item;
        to_.schedOps_->resumed(to_.schedState_, &item, m.served, now_);
    }

    void arrive(Moving &m) const
    {
        const auto &before = *m.before;
        m.after = to_.adopt(*m.place.flow, m.place.est.data(), before.host, now_, before.attained, m.served,
                            before.remaining);
        m.after->flags = before.flags;
    }

    void restoreItems() const
    {
        for (const auto &kept : kept_) {
            const auto item = kept.whose.item;
            if (!item)
                continue;
            const auto earlier = [](const Moving &m, const uint64_t seq) { return m.before->seq < seq; };
            const auto found = std::lower_bound(moving_.begin(), moving_.end(), item->seq, earlier);
            if (found->resumes)
                restore(kept, {nullptr, nullptr, found->after});
        }
    }

    Engine &from_, &to_;
    const MigrationPlan &plan_;
    const msfrs_plugin &plugin_;
    const msfrs_time now_;
    std::unordered_map<const msfrs_class *, msfrs_class *> heirs_; ///< of classes that continue
    std::vector<msfrs_class *> classes_;
    std::vector<msfrs_flow *> flows_;
    std::unordered_set<const void *> known_;  ///< classes, flows and items that figures may be of
    std::vector<Moving> moving_;              ///< in the order of seq
    std::vector<Kept> kept_;
    std::vector<double> figures_;
    std::string fault_;                       ///< of save(): no exception crosses the plugin's call
};

void Migrate(Engine &from, Engine &to, const MigrationPlan &plan, const msfrs_time now)
{
    Migration(from, to, plan, now).run();
}

msfrs_item *Engine::move(msfrs_item &item, msfrs_flow &to, const msfrs_time now)
{
    assert(cost_ == Cost::Measured);
    const bool waits = isQueued(item);
    int64_t est[MSFRS_RESOURCES] = {};
    for (uint32_t r = 0; r < resources_; ++r)
        est[r] = waits ? item.est[r] : unused(item, r);
    auto *const next = adopt(to, est, item.host, now, item.attained, !waits, item.remaining);
    next->flags = item.flags;
    waits ? remove(item, now, MSFRS_GONE) : done(item, now);
    return next;
}

std::string BeginsAnew(const msfrs_plugin &from, const msfrs_plugin &to)
{
    if (Same(from, to))
        return {};
    return std::string("scheduler ") + to.name + " starts from zero: past service of classes and users does not count";
}

} // namespace msfrs
