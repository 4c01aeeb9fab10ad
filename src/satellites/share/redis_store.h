// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The store in Valkey or Redis: an expiring key for each gateway. Non-blocking: one connection, opened when needed;
/// all commands of an exchange are sent at once.
#pragma once

#include "daemon/event.h"
#include "satellites/share/replies.h"
#include "satellites/share/store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct bufferevent;
struct evdns_base;
struct ssl_ctx_st;

namespace msfrs::share {

struct RedisParams {
    std::string host = "127.0.0.1"; ///< an address or a name
    uint16_t port = 6379;
    bool tls = false;
    std::string name;        ///< required in the certificate; empty: host
    std::string ca;          ///< file of authorities; empty: the system's
    std::string certificate, key; ///< our own files; empty: none
    std::string user, password;   ///< empty: none
    unsigned database = 0;
    std::string link = "link";    ///< prefix of the keys, the same for all gateways of a link
    int64_t timeToLive = 0;       ///< ns, of a message
};

class RedisStore final : public Store {
public:
    /// \param names of gateways, our own first
    /// \throws SystemError an unusable TLS file
    RedisStore(event_base *, RedisParams, const std::vector<std::string> &names);
    ~RedisStore() override;

    void exchange(const std::string &message, Done) override;
    void abandon() override;

private:
    template <class T>
    using Owned = std::unique_ptr<T, void (*)(T *)>;

    void connect();
    void send();
    void readable();
    void happened(short what);
    std::string whyLost(short what);
    void fail(std::string why);
    void finish(const Answer &);

    event_base *const base_;
    const RedisParams params_;
    std::vector<std::string> keys_;
    Owned<ssl_ctx_st> tls_;
    Owned<evdns_base> names_;
    Owned<bufferevent> connection_;
    std::unique_ptr<Replies> replies_;
    bool up_ = false;       ///< the connection is established
    std::string message_;
    Done done_;             ///< empty: no exchange in progress
    std::string failure_;   ///< reported from the event loop
    std::unique_ptr<event, void (*)(event *)> later_;
};

} // namespace msfrs::share
