/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_CLIENTWATCH_H
#define SQUID_SRC_MSFRS_CLIENTWATCH_H

#include "base/AsyncJob.h"
#include "base/CbcPointer.h"
#include "comm/Connection.h"
#include "comm/forward.h"

class CommIoCbParams;
class ConnStateData;

namespace Msfrs
{

/// Reads from the client of a held tunnel, which nobody else does then, so that a client that leaves is
/// noticed. Closes the connection of a client that leaves; keeps in ConnStateData::inBuf what it sends.
class ClientWatch: public AsyncJob
{
    CBDATA_CHILD(ClientWatch);

public:
    using Pointer = CbcPointer<ClientWatch>;

    ClientWatch(const Comm::ConnectionPointer &, const CbcPointer<ConnStateData> &);

    /// Ends a watch, if there is one. The connection may be read by others at once.
    static void Stop(const Pointer &);

private:
    /* AsyncJob API */
    void start() override;
    bool doneAll() const override { return !reader_; }
    void swanSong() override;

    void read();
    void noteReadable(const CommIoCbParams &);
    void cancelRead();
    void stop() { mustStop("the tunnel goes on"); }

    Comm::ConnectionPointer client_;
    CbcPointer<ConnStateData> manager_;
    AsyncCall::Pointer reader_; ///< set while we wait for client_ to become readable
};

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_CLIENTWATCH_H */

