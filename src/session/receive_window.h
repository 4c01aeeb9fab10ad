// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What a server may have in flight, looked at once a quantum: a bound of the receive window that follows what the
/// scheduler lets the response have.
#ifndef MSFRS_SESSION_RECEIVE_WINDOW_H
#define MSFRS_SESSION_RECEIVE_WINDOW_H

#include "session/server_connection.h"

#include <cstdint>

namespace msfrs {

class ReceiveWindow {
public:
    void beginQuantum() { untilFitting_ = 1; }
    /// Bytes were read.
    void came(const int64_t bytes) { untilFitting_ -= bytes; }
    /// Whether the first bytes of a quantum were read; true once in each. Not before: Linux before 6.7 takes a window
    /// that is shut just now for all there may be. \param quantum bytes, 0: none
    bool due(int64_t quantum);
    /// \param buffered ServerConnection::bufferedWindow(), positive \param wanted RequestScheduler::receiveBuffer()
    void fit(ServerConnection &, int64_t buffered, int64_t wanted);

    int64_t bound() const { return bound_; }

private:
    int64_t untilFitting_ = 1; ///< bytes to read until then
    int64_t bound_ = 0;        ///< bytes; 0: not set yet
};

} // namespace msfrs

#endif
