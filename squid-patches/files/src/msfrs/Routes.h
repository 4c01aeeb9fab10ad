/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_ROUTES_H
#define SQUID_SRC_MSFRS_ROUTES_H

#include "comm/forward.h"

#include <string>

namespace Ip
{
class Address;
}

namespace msfrs::squid
{

/// The kernel's routing, asked by rtnetlink(7), which sends no packet.
class Routes
{
public:
    Routes(); ///< \throws ConfigError
    ~Routes();

    Routes(Routes &&) = delete; // no copying or moving of any kind

    /// The interface by which packets of a connection leave. One that is not open yet is routed as connect(2) will do:
    /// by its destination, its local address, if it has one, its TOS and its mark.
    /// \returns its name; empty: there is no route, or the kernel does not answer
    std::string interfaceOf(const Comm::Connection &);

    /// The local address that the kernel would choose for a new connection; no address: there is no route.
    Ip::Address sourceOf(const Comm::Connection &);

    /// Whether interfaces, addresses, rules or routes may have changed since the last call.
    bool changed();

private:
    struct Answer;
    Answer ask(const Comm::Connection &, const Ip::Address &from);

    int questions_ = -1;
    int news_ = -1;
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_ROUTES_H */
