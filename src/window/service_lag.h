// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Lag: by how many bytes a user's service is behind its fair share, while it has requests. After Stoica and
/// Abdel-Wahab, "Earliest eligible virtual deadline first" (1995), where it compensates for quanta; not in the paper.
///
///     V += b / sum of active weights      a user's  S += b / w      lag = w (V - S)
///
/// for every b bytes that arrive for a user of weight w. With many users, turns enforce the weights. If a few users
/// have all their responses in service, receive windows divide the link. Windows are inexact by whole segments, and
/// servers differ in how they use them. So the lag is fed back to the windows, which enforces the weights there. A user
/// that becomes active has no lag unless it is ahead, so stopping gains nothing. A user that is alone has none either.
#pragma once

#include <algorithm>

namespace msfrs {

class ServiceLag {
public:
    /// Bound of the lag either way, in seconds of link capacity: old differences are not compensated for.
    /// docs/lab/results.md has lower and higher bounds.
    static constexpr double Most = 0.25;

    struct User {
        double served = 0; ///< S, bytes per weight
    };

    /// \param most bytes >= 0, bound of the lag either way
    void setMost(const double most) { most_ = most; }

    /// Accounts for bytes that have arrived for a user.
    /// \param begins whether none of its responses was receiving before
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

    /// \returns the lag, bytes; negative: the user is ahead
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
