// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The order of N jobs on two machines without a buffer between them that minimises the idle time of the first machine.
///
/// Gilmore, Gomory, "Sequencing a one state-variable machine: a solvable case of the traveling salesman problem",
/// Operations Research 12 (1964); as algorithm 1 in Zhang et al., "ATFQ" (2015). Job j after job i leaves the first
/// machine idle for max(B_i - A_j, 0).
///
/// Line 25 of that algorithm is misprinted. The interchanges act on the index, psi(m) = phi(X_s1 ... X_t1 ... (m)):
/// they swap successors. Acting on phi(m), as printed, they give an order that is not optimal.
///
/// The optimal order is not unique. Ties in A or B go to the job given first, ties in the cost of interchanges to the
/// one at the smaller B: the result depends only on the input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace msfrs {

/// A packet for two resources.
struct Job {
    int64_t a; ///< A, time on the first machine, >= 0
    int64_t b; ///< B, time on the second, >= 0
};

/// Reuses its working memory between calls. O(N log N).
class GilmoreGomory {
public:
    /// Reserves memory for loops of up to n jobs: order() then does not allocate. \throws std::bad_alloc
    void reserve(const size_t n)
    {
        byA_.reserve(n + 1);
        byB_.reserve(n + 1);
        interchanges_.reserve(n);
        for (auto *const list : {&successor_, &cycle_, &s_, &t_})
            list->reserve(n + 1);
    }

    /// \param before B_N', of the last job of the previous loop: equation (9); 0 in the first loop
    /// \param order receives the indices of the jobs in `jobs`, first to last; of the same size as `jobs`
    void order(const std::vector<Job> &jobs, const int64_t before, std::vector<uint32_t> &order)
    {
        const auto n = static_cast<uint32_t>(jobs.size());
        order.resize(n);
        if (n < 2) {
            std::fill(order.begin(), order.end(), 0);
            return;
        }
        arrange(jobs, before);
        joinCycles();
        uint32_t m = virtual_;
        for (auto &place : order) {
            m = successor_[m];
            place = byB_[m].place;
        }
    }

private:
    struct Sorted {
        int64_t time;
        uint32_t place;
        bool operator<(const Sorted &o) const { return time != o.time ? time < o.time : place < o.place; }
    };
    struct Interchange {
        int64_t cost;
        uint32_t m; ///< of m and m + 1
        bool operator<(const Interchange &o) const { return cost != o.cost ? cost < o.cost : m < o.m; }
    };

    /// Lines 1-6: jobs by B, the virtual one among them; A_phi(m) is the m-th smallest.
    void arrange(const std::vector<Job> &jobs, const int64_t before)
    {
        const auto n = static_cast<uint32_t>(jobs.size());
        byA_.resize(n + 1);
        byB_.resize(n + 1);
        int64_t greatest = 0;
        for (uint32_t i = 0; i < n; ++i) {
            byB_[i] = {jobs[i].b, i};
            greatest = std::max(greatest, jobs[i].b);
        }
        byB_[n] = {before, n};
        std::sort(byB_.begin(), byB_.end());
        for (uint32_t m = 0; m <= n; ++m) {
            const auto place = byB_[m].place;
            if (place == n)
                virtual_ = m;
            byA_[m] = {place == n ? greatest : jobs[place].a, m};
        }
        std::sort(byA_.begin(), byA_.end());
        successor_.resize(n + 1);
        for (uint32_t m = 0; m <= n; ++m)
            successor_[m] = byA_[m].place;
    }

    /// Lines 7-25: the cheapest interchanges that make one cycle of them all.
    void joinCycles()
    {
        const auto n = static_cast<uint32_t>(successor_.size());
        cycle_.resize(n);
        std::iota(cycle_.begin(), cycle_.end(), 0);
        uint32_t cycles = n;
        for (uint32_t m = 0; m < n; ++m)
            cycles -= unite(m, successor_[m]);
        if (cycles == 1)
            return;
        interchanges_.clear();
        for (uint32_t m = 0; m + 1 < n; ++m) {
            if (find(m) == find(m + 1))
                continue; // they stay united
            const int64_t low = std::max(byB_[m].time, byA_[m].time);
            const int64_t high = std::min(byB_[m + 1].time, byA_[m + 1].time);
            interchanges_.push_back({std::max<int64_t>(high - low, 0), m});
        }
        std::sort(interchanges_.begin(), interchanges_.end());
        s_.clear();
        t_.clear();
        for (const auto &x : interchanges_) {
            if (unite(x.m, x.m + 1)) {
                (byA_[x.m].time >= byB_[x.m].time ? s_ : t_).push_back(x.m);
                if (--cycles == 1)
                    break;
            }
        }
        std::sort(s_.rbegin(), s_.rend());
        std::sort(t_.begin(), t_.end());
        for (const auto *const list : {&s_, &t_}) {
            for (const auto m : *list)
                std::swap(successor_[m], successor_[m + 1]);
        }
    }

    uint32_t find(uint32_t m)
    {
        while (cycle_[m] != m)
            m = cycle_[m] = cycle_[cycle_[m]];
        return m;
    }

    /// \returns whether they were separate
    bool unite(const uint32_t a, const uint32_t b)
    {
        const auto x = find(a), y = find(b);
        cycle_[std::max(x, y)] = std::min(x, y);
        return x != y;
    }

    std::vector<Sorted> byA_, byB_;
    std::vector<Interchange> interchanges_;
    std::vector<uint32_t> successor_, cycle_, s_, t_; ///< psi; union-find; the sequences S and T
    uint32_t virtual_ = 0;                            ///< index of p_{N+1} in byB_
};

} // namespace msfrs
