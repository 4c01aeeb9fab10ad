// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/redis_store.h"

#include "config/fields.h"
#include "satellites/share/message.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace msfrs::share {

namespace {

/// Maximum size of a reply other than a message, such as the text of an error.
constexpr size_t MostBeside = 4096;

bool IsAddress(const std::string &host)
{
    in6_addr unused;
    return inet_pton(AF_INET, host.c_str(), &unused) == 1 || inet_pton(AF_INET6, host.c_str(), &unused) == 1;
}

std::string TlsError(const unsigned long error)
{
    const char *const reason = error ? ERR_reason_error_string(error) : nullptr;
    return reason ? reason : "no reason given";
}

[[noreturn]] void FailTls(const std::string &file, const char *const what)
{
    throw SystemError("store: " + file + ": " + what + ": " + TlsError(ERR_peek_last_error()));
}

SSL_CTX *NewTls(const RedisParams &params)
{
    if (!params.tls)
        return nullptr;
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX *)> made(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (!made || SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION) != 1)
        throw SystemError("store: no TLS: " + TlsError(ERR_peek_last_error()));
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
    if (params.ca.empty() ? SSL_CTX_set_default_verify_paths(made.get()) != 1
                          : SSL_CTX_load_verify_locations(made.get(), params.ca.c_str(), nullptr) != 1)
        FailTls(params.ca.empty() ? "the system's authorities" : params.ca, "no valid certificates of authorities");
    if (params.certificate.empty())
        return made.release();
    if (SSL_CTX_use_certificate_chain_file(made.get(), params.certificate.c_str()) != 1)
        FailTls(params.certificate, "no certificate");
    if (SSL_CTX_use_PrivateKey_file(made.get(), params.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(made.get()) != 1)
        FailTls(params.key, "not the key of the certificate");
    return made.release();
}

/// A session that accepts only a certificate of this server.
SSL *NewSession(SSL_CTX *const tls, const std::string &name)
{
    SSL *const session = SSL_new(tls);
    if (!session)
        return nullptr;
    if (IsAddress(name)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name.c_str());
    } else {
        SSL_set1_host(session, name.c_str());
        SSL_set_tlsext_host_name(session, name.c_str());
    }
    return session;
}

} // namespace

RedisStore::RedisStore(event_base *const base, RedisParams params, const std::vector<std::string> &names):
    base_(base), params_(std::move(params)), tls_(NewTls(params_), SSL_CTX_free),
    names_(nullptr, [](evdns_base *const b) { evdns_base_free(b, 0); }), connection_(nullptr, bufferevent_free),
    later_(evtimer_new(
               base,
               [](evutil_socket_t, short, void *const self) {
                   auto &store = *static_cast<RedisStore *>(self);
                   store.finish({std::exchange(store.failure_, {}), {}});
               },
               this),
           event_free)
{
    if (!later_)
        throw SystemError("store: no timer");
    if (!IsAddress(params_.host)) {
        names_.reset(evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE));
        if (!names_)
            throw SystemError("store host=" + params_.host + ": /etc/resolv.conf cannot be used; an address can");
    }
    for (const auto &name : names)
        keys_.push_back("msfrs:" + params_.link + ":" + name);
}

RedisStore::~RedisStore() { abandon(); }

void RedisStore::exchange(const std::string &message, Done done)
{
    message_ = message;
    done_ = std::move(done);
    if (connection_)
        send();
    else
        connect();
}

void RedisStore::abandon()
{
    done_ = nullptr;
    failure_.clear();
    event_del(later_.get());
    connection_.reset();
    replies_.reset();
    up_ = false;
}

void RedisStore::connect()
{
    if (tls_) {
        auto *const session = NewSession(tls_.get(), params_.name.empty() ? params_.host : params_.name);
        connection_.reset(session ? bufferevent_openssl_socket_new(base_, -1, session, BUFFEREVENT_SSL_CONNECTING,
                                                                   BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS)
                                  : nullptr);
        if (connection_)
            bufferevent_openssl_set_allow_dirty_shutdown(connection_.get(), 1);
    } else {
        connection_.reset(bufferevent_socket_new(base_, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS));
    }
    if (!connection_) {
        fail("no memory for a connection");
        return;
    }
    replies_ = std::make_unique<Replies>(MostMessage + MostBeside);
    bufferevent_setcb(
        connection_.get(), [](bufferevent *, void *const self) { static_cast<RedisStore *>(self)->readable(); },
        nullptr,
        [](bufferevent *, const short what, void *const self) { static_cast<RedisStore *>(self)->happened(what); },
        this);
    if (bufferevent_socket_connect_hostname(connection_.get(), names_.get(), AF_UNSPEC, params_.host.c_str(),
                                            params_.port) < 0) {
        fail(std::string("cannot connect: ") + std::strerror(errno));
        return;
    }
    bufferevent_enable(connection_.get(), EV_READ | EV_WRITE);
    std::string commands;
    if (!params_.password.empty()) {
        std::vector<std::string> auth{"AUTH"};
        if (!params_.user.empty())
            auth.push_back(params_.user);
        auth.push_back(params_.password);
        commands += Format(auth);
        replies_->expect(Command::Auth);
    }
    if (params_.database != 0) {
        commands += Format({"SELECT", std::to_string(params_.database)});
        replies_->expect(Command::Select);
    }
    bufferevent_write(connection_.get(), commands.data(), commands.size());
    send();
}

void RedisStore::send()
{
    std::string commands;
    for (const auto &key : keys_) {
        // One byte more than the longest message reveals one that is too long, and no peer can make us read more.
        commands += Format({"GETRANGE", key, "0", std::to_string(MostMessage)});
        replies_->expect(Command::Fetch);
    }
    commands += Format({"SET", keys_[0], message_, "PX", std::to_string(params_.timeToLive / 1'000'000)});
    replies_->expect(Command::Leave);
    bufferevent_write(connection_.get(), commands.data(), commands.size());
}

void RedisStore::readable()
{
    auto *const in = bufferevent_get_input(connection_.get());
    while (const auto size = evbuffer_get_contiguous_space(in)) {
        const auto *const data = evbuffer_pullup(in, static_cast<ssize_t>(size));
        const std::string_view bytes(reinterpret_cast<const char *>(data), size);
        if (!replies_->feed(bytes)) {
            fail(replies_->failure());
            return;
        }
        evbuffer_drain(in, size);
    }
    if (replies_->complete() && done_)
        finish({{}, replies_->take()});
}

void RedisStore::happened(const short what)
{
    if (what & BEV_EVENT_CONNECTED) {
        const int on = 1;
        setsockopt(bufferevent_getfd(connection_.get()), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        up_ = true;
    } else {
        fail(whyLost(what));
    }
}

std::string RedisStore::whyLost(const short what)
{
    if (what & BEV_EVENT_EOF)
        return "closed the connection";
    if (const int error = bufferevent_socket_get_dns_error(connection_.get()))
        return std::string("no address of that name: ") + evutil_gai_strerror(error);
    const int error = EVUTIL_SOCKET_ERROR();
    if (tls_) {
        const auto *const session = bufferevent_openssl_get_ssl(connection_.get());
        const long verified = session ? SSL_get_verify_result(session) : X509_V_OK;
        if (verified != X509_V_OK)
            return std::string("has an untrusted certificate: ") + X509_verify_cert_error_string(verified);
        if (const auto reason = bufferevent_get_openssl_error(connection_.get()))
            return "TLS failed: " + Printable(TlsError(reason));
    }
    return std::string(up_ ? "lost: " : "cannot connect: ") +
        (error ? evutil_socket_error_to_string(error) : "no reason given");
}

void RedisStore::fail(std::string why)
{
    connection_.reset();
    replies_.reset();
    up_ = false;
    if (!done_)
        return; // the next exchange makes a new connection
    failure_ = std::move(why);
    const timeval now{0, 0};
    evtimer_add(later_.get(), &now); // never called within exchange()
}

void RedisStore::finish(const Answer &answer)
{
    const auto done = std::exchange(done_, nullptr);
    if (done)
        done(answer, MonotonicNow());
}

} // namespace msfrs::share
