// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reads of a response, several segments at a time. On a slow link every segment comes alone, and each would cost a
/// wakeup, a read and a write. Only for a response that is known to have more to come; its end is never waited for
/// longer than without, and a server that falls silent is not either, but for the time of two check()s.
#ifndef MSFRS_SESSION_READ_BATCH_H
#define MSFRS_SESSION_READ_BATCH_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>

namespace msfrs {

class ReadBatch {
public:
    /// ns between two check()s. Half and double change how late the end of a stalled response is noticed, nothing else.
    static constexpr msfrs_time CheckEvery = 1'000'000'000;

    /// Before a read. \param rest bytes that are still to be read, negative: unknown
    /// \param worthwhile whether to begin
    void prepare(int64_t rest, bool worthwhile);
    /// After a read of so many bytes.
    void noteRead(int64_t bytes);
    /// From time to time: gives up if nothing was read since the last time.
    void check();
    /// What was learnt about the server is forgotten.
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

#endif
