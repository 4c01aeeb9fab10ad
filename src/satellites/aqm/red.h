// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The average queue and the early drop of RED, for red, choke and fred.
///
/// Paper: Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN (1993), sections
/// 4 and 7; gentle: Floyd, "Recommendation on using the gentle_ variant of RED" (2000).
///
///     avg = (1 - w) avg + w q          at an arrival to a queue of q
///     avg = (1 - w)^m avg              at one to an empty queue, m = idle time / transmission time
///     p_b = profile(avg)               in byte mode times size / typical size
///     p_a = p_b / (1 - count p_b)      count: arrivals accepted since the last drop, so that gaps are uniform
///
/// Deviations: count is 0 for the first arrival after a drop, as in the paper's section 7; its pseudocode, with 1,
/// would drop every packet from p_b = 1/2 on, which gentle reaches. An arrival at a queue that stays empty decays avg
/// only by the time since the last such arrival; the paper would count the whole idle time again at each.
#pragma once

#include "aqm/buffer.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

/// The gentle drop profile of RED: 0 up to `low`, maxp at `high`, 1 from `certain` on, linear between. Continuous
/// and never falling for low < high < certain and 0 <= maxp <= 1.
inline double GentleProfile(const double u, const double low, const double high, const double certain,
                            const double maxp)
{
    if (u <= low)
        return 0;
    if (u < high)
        return maxp * (u - low) / (high - low);
    if (u < certain)
        return maxp + (1 - maxp) * (u - high) / (certain - high);
    return 1;
}

constexpr msfrs_param MinParam = {"min", MSFRS_REAL, "% of limit", "25", 0, 100, nullptr,
                                  "average queue above which packets are dropped at random"};
constexpr msfrs_param MaxParam = {"max", MSFRS_REAL, "% of limit", "50", 0, 100, nullptr,
                                  "average queue at which the drop probability is maxp"};
constexpr msfrs_param MaxpParam = {"maxp", MSFRS_REAL, "%", "2", 0, 100, nullptr, "drop probability at max"};
constexpr msfrs_param WeightParam = {"weight", MSFRS_REAL, "", "0.002", 1e-9, 1, nullptr,
                                     "gain of the moving average: weight of the latest queue length"};
constexpr msfrs_param TransmissionParam = {"transmission", MSFRS_INT, "ns", "1200000", 1, 1e12, nullptr,
                                           "transmission time of a typical packet: on an idle link the average decays "
                                           "as if an empty queue were sampled that often"};
constexpr msfrs_param GentleParam = {"gentle", MSFRS_BOOL, "", "on", 0, 0, nullptr,
                                     "raise the drop probability to 1 at twice max; off: drop every packet above max"};

class Red {
public:
    enum class Zone { Below, Early, Beyond }; ///< avg < min, < max, >= max

    /// \param params mode, limit, packet, min, max, maxp, weight, transmission, ecn
    /// \param certain multiple of max from which every packet is dropped: 2 if gentle, else 1
    bool init(const msfrs_host &host, const msfrs_value *const params, const double certain, char *const err,
              const size_t length)
    {
        if (!buffer.init(host, params, err, length))
            return false;
        if (params[3].d >= params[4].d) {
            std::snprintf(err, length, "min=%g must be less than max=%g", params[3].d, params[4].d);
            return false;
        }
        dice = {&host};
        min_ = params[3].d / 100 * static_cast<double>(buffer.limit);
        max_ = params[4].d / 100 * static_cast<double>(buffer.limit);
        certain_ = certain * max_;
        maxp_ = params[5].d / 100;
        weight_ = params[6].d;
        transmission_ = static_cast<double>(params[7].i);
        ecn_ = params[8].i;
        return true;
    }

    /// Updates the average at an arrival or, for fred, at a departure.
    void average(const msfrs_queue_view &q, const msfrs_time now)
    {
        if (q.length > 0) {
            average_ += weight_ * (static_cast<double>(buffer.length(q)) - average_);
            return;
        }
        const msfrs_time since = std::max(q.idle_since, decayed_);
        if (now > since) // no decay while the clock stands still
            average_ *= std::pow(1 - weight_, static_cast<double>(now - since) / transmission_);
        decayed_ = std::max(now, decayed_);
    }

    Zone zone() const { return average_ < min_ ? Zone::Below : average_ < max_ ? Zone::Early : Zone::Beyond; }
    double average() const { return average_; }
    double min() const { return min_; }

    /// Makes the random decision for an arrival: ACCEPT, MARK or DROP.
    msfrs_verdict toss(const msfrs_item &i)
    {
        double p = GentleProfile(average_, min_, max_, certain_, maxp_);
        if (p <= 0) {
            restart();
            return MSFRS_ACCEPT;
        }
        if (buffer.bytes)
            p *= static_cast<double>(i.est[0]) / static_cast<double>(buffer.packet);
        const double passed = static_cast<double>(count_) * p;
        if (average_ < certain_ && passed < 1 && dice.uniform() >= p / (1 - passed)) {
            ++count_;
            return MSFRS_ACCEPT;
        }
        restart();
        return mayMark(i) ? MSFRS_MARK : MSFRS_DROP;
    }

    /// The verdict on an arrival, after average(): by a full buffer, or at random.
    msfrs_verdict judge(const msfrs_item &i, const msfrs_queue_view &q)
    {
        if (!buffer.full(q, i))
            return toss(i);
        restart();
        return MSFRS_DROP;
    }

    /// Beyond max, congestion is no longer incipient: no packet is marked (RFC 3168, section 7).
    bool mayMark(const msfrs_item &i) const { return ecn_ && zone() == Zone::Early && (i.flags & MSFRS_ECN_CAPABLE); }
    void restart() { count_ = 0; } ///< for an arrival without a random decision: below min, or buffer full

    Buffer buffer;
    Dice dice;

private:
    double min_, max_, certain_, maxp_, weight_, transmission_;
    double average_;
    msfrs_time decayed_;
    int64_t count_;
    bool ecn_;
};

/// The gauge shared by the AQMs that use Red.
constexpr msfrs_gauge AverageGauge = {"average", "packets or bytes", "average queue avg of RED"};

} // namespace msfrs
