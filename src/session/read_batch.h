// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reads a response several segments at a time. On a slow link every segment arrives alone, and each would cost a
/// wake-up, a read and a write. Used only for a response that is known to have more to come, or a TLS record, which
/// is of no use to the client before its end. Its end is never noticed later than without batches, and a server that falls
/// silent is noticed at most two check()s later.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <cstdint>

namespace msfrs {

class ReadBatch {
public:
    /// ns between two check()s. Half or double changes how late the end of a stalled response is noticed, nothing else.
    static constexpr msfrs_time CheckEvery = 1'000'000'000;

    /// Call before a read. \param rest bytes still to come, at least; zero or negative: unknown
    /// \param worthwhile whether to begin a batch
    void prepare(int64_t rest, bool worthwhile);
    /// Call after a read of so many bytes.
    void noteRead(int64_t bytes);
    /// Call periodically: gives up if nothing was read since the last call.
    void check();
    /// Forgets what was learnt about the server.
    void stop();

    /// SO_RCVLOWAT, bytes: the next read waits for so many.
    int64_t lowWater() const { return lowWater_; }

private:
    int64_t lowWater_ = 1;
    int64_t rest_ = 0;             ///< valid while lowWater_ > 1
    bool read_ = false;            ///< since the last check()
    bool silent_ = false;          ///< given up
};

} // namespace msfrs
