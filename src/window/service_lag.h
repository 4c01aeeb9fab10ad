// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Lag: by how many bytes a user's service is behind its fair share, while it has requests. After Stoica and
/// Abdel-Wahab, "Earliest eligible virtual deadline first" (1995), where it makes up for quanta; not in the paper.
///
///     V += b / sum of active weights      a user's  S += b / w      lag = w (V - S)
///
/// for every b bytes that come for a user of weight w. Turns keep the weights of many users. Where few have all their
/// responses in service, windows divide the link, and these are off by segments and by what servers make of them. So
/// the lag, fed back to windows, keeps the weights there. A user that begins has no lag, unless it is ahead: so that
/// stopping pays nobody. Nor has one that is alone.
#ifndef MSFRS_WINDOW_SERVICE_LAG_H
#define MSFRS_WINDOW_SERVICE_LAG_H

#include <algorithm>

namespace msfrs {

class ServiceLag {
public:
    /// Of lag either way, what the link carries in so many s: what differed long ago is not made up for.
    /// docs/lab/results.md has less and more.
    static constexpr double Most = 0.25;

    struct User {
        double served = 0; ///< S, bytes per weight
    };

    /// \param most bytes >= 0, of lag either way
    void setMost(const double most) { most_ = most; }

    /// Bytes have come for a user.
    /// \param begins none of its responses was receiving before
    /// \param weight w > 0 \param weights of all active users, >= w
    void serve(User &user, const double bytes, const bool begins, const double weight, const double weights)
    {
        if (weights <= weight || (begins && user.served < due_))
            user.served = due_;
        if (weights <= weight)
            return;
        bound(user, weight);
        user.served += bytes / weight;
        due_ += bytes / weights;
    }

    /// Bytes; negative: it is ahead.
    double bytes(User &user, const double weight) const
    {
        bound(user, weight);
        return (due_ - user.served) * weight;
    }

private:
    void bound(User &user, const double weight) const
    {
        user.served = std::clamp(user.served, due_ - most_ / weight, due_ + most_ / weight);
    }

    double due_ = 0;  ///< V, bytes per weight
    double most_ = 0; ///< bytes
};

} // namespace msfrs

#endif
