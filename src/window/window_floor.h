// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The floor: the share of the link that responses keep beside traffic that does not pass the gateway.
///
/// Such traffic also fills the link, so the rate controller would keep yielding to it. And receive windows that leave
/// no standing queue lose against traffic that fills the bottleneck queue. So while requests wait and responses have
/// less than the floor, receive windows grow and more responses are released: they compete like that many TCP
/// connections. Some requests must still wait, since weights have no effect without a backlog (MostPlaces).
///
/// Unresponsive traffic (a constant stream) is detected. TCP takes many round trips through a full buffer to respond,
/// so growth has half a minute to take effect. If it has none, it is reversed, and not tried again for ten minutes,
/// unless the other traffic then takes the share given up: a constant stream does not. Not in the paper.
#pragma once

#include "plugin/msfrs_plugin.h"

namespace msfrs {

class WindowFloor {
public:
    static constexpr double OthersMatter = 0.1; ///< share of C that a wrong overhead cannot explain
    static constexpr double Most = 8; ///< of factor()
    static constexpr double MostPlaces = 0.6; ///< times the slots at which a class would have none waiting

    /// Figures of an interval that has ended.
    struct Interval {
        msfrs_time elapsed;  ///< its length, ns > 0
        double utilisation;  ///< U, share of C
        double own;          ///< share of C that responses had; negative: not known
        double fullShare;    ///< share of it in which a request waited for a slot, 0 to 1
    };

    /// \param floor share of C that responses keep, 0 <= floor < 1; 0: none
    void update(const Interval &, double floor);

    double factor() const { return factor_; } ///< of receive windows, 1 to Most
    /// Share of C that other traffic had, a mean over some seconds; 0 if a wrong overhead can explain it.
    double others() const { return others_ < OthersMatter ? 0 : others_; }
    /// Whether growth had no effect within the last ten minutes: the other traffic is unresponsive.
    bool inVain() const { return rest_ > 0; }

private:
    void notice(const Interval &);
    void yield();

    double factor_ = 1;
    double own_ = 1, others_ = 0, waiting_ = 0; ///< means over some seconds: shares of C, share of time with waiting
    double before_ = 0;     ///< own_ before the windows grew; after growth was given up, own_ at that time
    msfrs_time short_ = 0;  ///< ns since responses have had less than the floor
    msfrs_time rest_ = 0;   ///< ns until growth is tried again
    bool worth_ = false;    ///< whether growth has an effect
};

} // namespace msfrs
