/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_READBATCH_H
#define SQUID_SRC_MSFRS_READING_READBATCH_H

#include "comm/forward.h"
#include "msfrs/reading/Checked.h"

#include <cstdint>

namespace msfrs::squid
{

/// Reads of a response, several segments at a time. On a slow link every segment comes alone, and each would cost a
/// wakeup, a read and a write. Only for a response that is known to have more to come; its end is never waited for
/// longer than without us, and a server that falls silent is not either, but for the time of two check()s.
class ReadBatch
{
public:
    static constexpr msfrs_time CheckEvery = 1'000'000'000;

    /// To be called before every read.
    /// \param rest bytes that are still to be read, negative: unknown
    /// \param worthwhile whether to begin
    void prepare(const Comm::ConnectionPointer &, int64_t rest, bool worthwhile, Checked<ReadBatch> &, msfrs_time now);

    /// To be called after a read.
    void noteRead(int64_t bytes);

    /// The connection may be read by others, or we end; and what was learnt about the server is forgotten.
    void stop();

    /// To be called from time to time: gives up if nothing was read since the last time.
    void check(msfrs_time now);

private:
    void set(int bytes);

    Comm::ConnectionPointer conn_; ///< set while the kernel waits for more than a byte
    Checked<ReadBatch> *all_ = nullptr; ///< valid as long as conn_ is set
    Checked<ReadBatch>::Place place_; ///< among these
    int64_t rest_ = 0;             ///< valid as they are
    int lowWater_ = 1;
    bool read_ = false;            ///< since the last check()
    bool silent_ = false;          ///< given up
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_READBATCH_H */
