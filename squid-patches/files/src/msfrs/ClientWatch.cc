/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "base/AsyncJobCalls.h"
#include "client_side.h"
#include "comm.h"
#include "comm/Read.h"
#include "CommCalls.h"
#include "debug/Stream.h"
#include "fde.h"
#include "http/Stream.h"
#include "msfrs/ClientWatch.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace msfrs::squid
{

CBDATA_CLASS_INIT(ClientWatch);

/// Bytes. A client needs an answer after its TLS ClientHello; a benign one does not send more than this before.
static constexpr SBuf::size_type MostKept = 65536;

/// The first byte of a TLS ClientHello. Who sends nothing else, or nothing, and closes its half has left.
static constexpr char TlsHandshake = 22;

ClientWatch::ClientWatch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &manager,
                         const Mode mode):
    AsyncJob("msfrs::ClientWatch"),
    client_(client),
    manager_(manager),
    mode_(mode)
{
}

void
ClientWatch::Stop(const Pointer &watch)
{
    if (watch.valid()) {
        watch->cancelRead();
        CallJobHere(97, 5, watch, ClientWatch, stop);
    }
}

void
ClientWatch::start()
{
    AsyncJob::start();
    read();
}

/// waits for the client to send something or to leave
void
ClientWatch::read()
{
    if (!Comm::IsConnOpen(client_) || fd_table[client_->fd].closing())
        return;
    if (!manager_.valid() || manager_->inBuf.length() >= MostKept)
        return;
    if (Comm::MonitorsRead(client_->fd))
        return; // something else reads it, and will notice, too

    using Dialer = CommCbMemFunT<ClientWatch, CommIoCbParams>;
    reader_ = JobCallback(97, 5, Dialer, this, ClientWatch::noteReadable);
    Comm::Read(client_, reader_);
}

void
ClientWatch::noteReadable(const CommIoCbParams &io)
{
    reader_ = nullptr;
    if (io.flag == Comm::ERR_CLOSING || !manager_.valid())
        return;

    if (mode_ == Mode::keep ? keepData() : lookForEnd())
        return;
    debugs(97, 3, "client has left while held: " << client_);
    client_->close();
}

/// Reads what the client sent, and waits for more, unless the client has closed its half and waits for an answer.
/// \returns whether the client is still there
bool
ClientWatch::keepData()
{
    auto &kept = manager_->inBuf;
    CommIoCbParams now(this);
    now.conn = client_;
    now.size = MostKept - kept.length(); // positive, or we would not be reading
    kept.reserveSpace(std::min<SBuf::size_type>(now.size, 4096));
    const auto result = Comm::ReadNow(now, kept);
    if (result == Comm::ENDFILE)
        return !kept.isEmpty() && kept[0] != TlsHandshake;
    if (result != Comm::OK && result != Comm::INPROGRESS)
        return false;
    read();
    return true;
}

/// waits for more unless there is unread data, behind which the end would not be seen
/// \returns whether the client is still there
bool
ClientWatch::lookForEnd()
{
    char byte = 0;
    const auto got = recv(client_->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        return true;
    if (got == 0 || !ignoreErrno(errno))
        return false;
    read();
    return true;
}

void
ClientWatch::cancelRead()
{
    if (reader_ && Comm::IsConnOpen(client_))
        Comm::ReadCancel(client_->fd, reader_);
    reader_ = nullptr;
}

void
ClientWatch::swanSong()
{
    cancelRead();
    AsyncJob::swanSong();
}

} // namespace msfrs::squid
