/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_READING_FROZENTIMEOUT_H
#define SQUID_SRC_MSFRS_READING_FROZENTIMEOUT_H

#include "comm/Connection.h"

#include <ctime>

namespace msfrs::squid
{

/// Suspends the timeout of a connection during a pause, which is not the peer's fault.
class FrozenTimeout
{
public:
    /// suspends the timeout of a connection, if it has one
    void freeze(const Comm::ConnectionPointer &);

    /// lets it run again, unless it has been set anew meanwhile, or the connection is another one
    void thaw(const Comm::ConnectionPointer &);
    void thaw() { thaw(Comm::ConnectionPointer(conn_)); }

private:
    Comm::ConnectionPointer conn_; ///< set while its timeout is suspended
    time_t left_ = 0;              ///< seconds that it had left
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_FROZENTIMEOUT_H */
