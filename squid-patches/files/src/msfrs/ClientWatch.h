/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_CLIENTWATCH_H
#define SQUID_SRC_MSFRS_CLIENTWATCH_H

#include "base/AsyncJob.h"
#include "base/CbcPointer.h"
#include "comm/Connection.h"
#include "comm/forward.h"

class CommIoCbParams;
class ConnStateData;

namespace msfrs::squid
{

/// Watches the client of a held tunnel, whose connection nothing else reads meanwhile. Closes the connection when the
/// client leaves.
class ClientWatch: public AsyncJob
{
    CBDATA_CHILD(ClientWatch);

public:
    using Pointer = CbcPointer<ClientWatch>;

    /// what is done with data from the client
    enum class Mode {
        keep, ///< read into ConnStateData::inBuf
        look  ///< left in the socket for the TLS library. A client that sends data is no longer watched.
    };

    ClientWatch(const Comm::ConnectionPointer &, const CbcPointer<ConnStateData> &, Mode);

    /// Ends a watch, if there is one. Others may read the connection at once.
    static void Stop(const Pointer &);

private:
    /* AsyncJob API */
    void start() override;
    bool doneAll() const override { return !reader_; }
    void swanSong() override;

    void read();
    bool keepData();
    bool lookForEnd();
    void noteReadable(const CommIoCbParams &);
    void cancelRead();
    void stop() { mustStop("the tunnel goes on"); }

    Comm::ConnectionPointer client_;
    CbcPointer<ConnStateData> manager_;
    Mode mode_;
    AsyncCall::Pointer reader_; ///< set while we wait for client_ to become readable
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_CLIENTWATCH_H */

