/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_ABSENT_H
#define SQUID_SRC_MSFRS_ABSENT_H

#include "base/AsyncCallbacks.h"
#include "base/RefCount.h"
#include "comm/forward.h"
#include "error/forward.h"
#include "http/forward.h"
#include "log/forward.h"
#include "msfrs/forward.h"

#include <cstdint>
#include <ostream>

class ConnStateData;

/* What the hooks call in a Squid that was configured --without-msfrs: nothing is ever scheduled. The real classes
 * document these functions. */

namespace msfrs::squid
{

inline Gateway *TheGateway() { return nullptr; }
inline bool SeveralLinks() { return false; }

class Verdict
{
public:
    ErrorState *error(HttpRequest *, const AccessLogEntryPointer &) const { return nullptr; }
};

inline std::ostream &operator <<(std::ostream &os, const Verdict &) { return os; }

class Ticket: public RefCountable
{
public:
    static TicketPointer Hold(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &,
                              const void *, const AsyncCallback<Verdict> &,
                              const Comm::ConnectionPointer & = nullptr) { return nullptr; }
    static TicketPointer Inherit(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &,
                                 const void *, const Comm::ConnectionPointer &) { return nullptr; }

    static int InitialReceiveBuffer(const Comm::Connection &) { return 0; }

    static bool MayReuse(const Comm::Connection &, HttpRequest *, const Comm::ConnectionPointer &) { return true; }

    bool held() const { return false; }
    void watch(const Comm::ConnectionPointer &, const CbcPointer<ConnStateData> &) {}
    void charge(int64_t, const char * = nullptr) {}
    bool mayRead(const Comm::ConnectionPointer &, int64_t, const Comm::ConnectionPointer & = nullptr) { return true; }
    void resumeBy(const AsyncCallPointer &) {}
    void expectAtLeast(int64_t) {}
    bool maySend(const char *, size_t) { return true; }
    void sendBy(const AsyncCallPointer &, const Comm::ConnectionPointer &, bool) {}
    void keepFrozen(const Comm::ConnectionPointer &) {}
    void finish(const void *) {}
    void report() const {}
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_ABSENT_H */

