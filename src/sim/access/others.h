// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Traffic that shares the link and does not pass the gateway: downloads by plain TCP, and a stream that does not give
/// way.
#ifndef MSFRS_SIM_ACCESS_OTHERS_H
#define MSFRS_SIM_ACCESS_OTHERS_H

#include "sim/access/connection.h"

#include <memory>
#include <vector>

namespace msfrs::sim::access {

struct OthersParams {
    uint32_t downloads = 0;         ///< each a connection that always has more to bring
    double constant = 0;            ///< share of C of the stream, 0 to 1
    msfrs_time from = 0, until = 3600 * Second; ///< ns: when all of them begin and end
};

class Others {
public:
    /// \param paths to the servers, over which the downloads are spread
    Others(Clock &, Link &, const OthersParams &, const std::vector<ServerPath> &paths);

    /// Bytes of frames that have come, those of connections as if all were full.
    int64_t carried() const { return stream_ + received_ * FullFrame / Mss; }

private:
    void beginDownloads();
    void sendStream();

    Clock &clock_;
    Link &link_;
    const OthersParams params_;
    std::vector<std::unique_ptr<Connection>> connections_;
    int64_t received_ = 0, stream_ = 0; ///< payload of the connections; frames of the stream
};

} // namespace msfrs::sim::access

#endif
