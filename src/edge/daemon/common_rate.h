// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What the threads of several queues share: the link's rate.
#pragma once

#include "edge/daemon/rate_source.h"

#include <atomic>
#include <vector>

namespace msfrs::edge {

/// The link's rate, divided among the threads that have packets waiting: to each in proportion to the weights of the
/// flows that wait there.
///
///     W_k = sum over classes c:  w_c n_kc / n_c          rate_k = C W_k / sum W_j
///
/// n_kc: flows of class c that are backlogged in thread k; n_c: in all of them. The sum of the rates is C; for the
/// time of one packet after a thread became idle or active it may be lower or higher.
struct CommonRate {
    std::atomic<uint32_t> flows[MostClasses]{}; ///< backlogged in all threads, by class
};

/// A thread's share. Used by one thread.
class SharedRate : public RateSource {
public:
    explicit SharedRate(CommonRate &common): common_(common) {}
    ~SharedRate() override { clear(); }
    SharedRate(const SharedRate &) = delete;

    int64_t pace(const Schedule &) override;
    bool adopt(const Schedule &, msfrs_time) override;
    void release() override { clear(); }
    void waits(const bool waiting, msfrs_time) override
    {
        if (!waiting)
            clear();
    }

    /// \param flows backlogged here, by class
    void tell(size_t cls, uint32_t flows);
    /// No packets wait here.
    void clear();
    /// This thread's share, 0..1. \param weights by class
    double of(const std::vector<double> &weights) const;

private:
    CommonRate &common_;
    std::vector<uint32_t> told_;
    std::vector<double> weights_; ///< by class: its share of the link
};

} // namespace msfrs::edge
