// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Traffic that shares the link and does not pass the gateway: downloads by plain TCP, and an unresponsive stream.
#pragma once

#include "sim/access/connection.h"

#include <memory>
#include <vector>

namespace msfrs::sim::access {

struct OthersParams {
    uint32_t downloads = 0;         ///< each a connection that always has data to send
    double constant = 0;            ///< share of C of the stream, 0 to 1
    msfrs_time from = 0, until = 3600 * Second; ///< ns: start and end of all of them
};

class Others {
public:
    /// \param paths to the servers, among which the downloads are distributed
    Others(Clock &, Link &, const OthersParams &, const std::vector<ServerPath> &paths);

    /// Bytes of frames received; those of connections are counted as full frames.
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
