// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Bounds the bytes that a server may have in flight: once a quantum, adjusts the receive window to what the scheduler
/// allows the response.
#pragma once

#include "session/server_connection.h"

#include <cstdint>

namespace msfrs {

class ReceiveWindow {
public:
    void beginQuantum() { untilFitting_ = 1; }
    /// Bytes were read.
    void came(const int64_t bytes) { untilFitting_ -= bytes; }
    /// Whether the first bytes of a quantum were read; true once in each. Not earlier: Linux before 6.7 takes a window
    /// that is shut at the moment for the largest allowed. \param quantum bytes, 0: none
    bool due(int64_t quantum);
    /// \param buffered ServerConnection::bufferedWindow(), positive \param wanted RequestScheduler::receiveBuffer()
    void fit(ServerConnection &, int64_t buffered, int64_t wanted);

    int64_t bound() const { return bound_; }

private:
    int64_t untilFitting_ = 1; ///< bytes to read until the next adjustment
    int64_t bound_ = 0;        ///< bytes; 0: not set yet
};

} // namespace msfrs
