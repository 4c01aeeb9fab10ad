// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/answer_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <tuple>

namespace msfrs {

namespace {

std::string AddressOf(const sockaddr_storage &peer)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (peer.ss_family == AF_INET)
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in &>(peer).sin_addr, text, sizeof(text));
    if (peer.ss_family == AF_INET6) {
        const auto &address = reinterpret_cast<const sockaddr_in6 &>(peer).sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&address))
            inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
        else
            inet_ntop(AF_INET6, &address, text, sizeof(text));
    }
    return text;
}

} // namespace

/// A client.
struct AnswerServer::Connection {
    AnswerServer &server;
    uint64_t number; ///< among those accepted
    std::string peer;
    std::unique_ptr<event, void (*)(event *)> deadline{nullptr, event_free};
    bool answered = false;

    /// Starts the deadline of the next step, which partial progress does not extend.
    void wait() const
    {
        const timeval patience{server.limits_.patience, 0};
        evtimer_add(deadline.get(), &patience);
    }

    void readable(bufferevent *const client)
    {
        if (answered)
            return;
        auto *const in = bufferevent_get_input(client);
        const auto length = evbuffer_get_length(in);
        const auto *const data = evbuffer_pullup(in, -1);
        const auto text = server.answer_({reinterpret_cast<const char *>(data), data ? length : 0}, peer);
        if (!text) {
            if (length > server.limits_.question)
                server.close(client);
            return;
        }
        answered = true;
        bufferevent_disable(client, EV_READ);
        wait();
        // The write callback is called once all of it was sent.
        bufferevent_write(client, text->data(), text->size());
    }
};

AnswerServer::AnswerServer(event_base *const base, Descriptor listening, const Limits limits, Answer answer):
    base_(base), limits_(limits), answer_(std::move(answer)), socket_(std::move(listening)),
    acceptable_(base, socket_.get(), EV_READ, [this] { accept(); })
{}

AnswerServer::~AnswerServer()
{
    while (!connections_.empty())
        close(connections_.begin()->first);
}

void AnswerServer::accept()
{
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    const int fd = accept4(socket_.get(), reinterpret_cast<sockaddr *>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (connections_.size() == limits_.connections) {
        const auto order = [](const auto &c) { return std::tie(c.second->answered, c.second->number); };
        close(std::min_element(connections_.begin(), connections_.end(), [&](const auto &a, const auto &b) {
                  return order(a) < order(b);
              })->first);
    }
    auto *const client = bufferevent_socket_new(base_, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!client) {
        ::close(fd);
        return;
    }
    auto &connection = connections_[client];
    connection = std::make_unique<Connection>(Connection{*this, ++accepted_, AddressOf(peer)});
    connection->deadline.reset(evtimer_new(
        base_,
        [](evutil_socket_t, short, void *c) {
            void *self = nullptr;
            bufferevent_getcb(static_cast<bufferevent *>(c), nullptr, nullptr, nullptr, &self);
            static_cast<Connection *>(self)->server.close(static_cast<bufferevent *>(c));
        },
        client));
    bufferevent_setcb(
        client, [](bufferevent *c, void *self) { static_cast<Connection *>(self)->readable(c); },
        [](bufferevent *c, void *self) {
            if (static_cast<Connection *>(self)->answered)
                static_cast<Connection *>(self)->server.close(c);
        },
        [](bufferevent *c, short, void *self) { static_cast<Connection *>(self)->server.close(c); }, connection.get());
    if (!connection->deadline) {
        close(client);
        return;
    }
    connection->wait();
    bufferevent_setwatermark(client, EV_READ, 0, 2 * limits_.question);
    bufferevent_enable(client, EV_READ | EV_WRITE);
}

void AnswerServer::close(bufferevent *const client)
{
    bufferevent_free(client);
    connections_.erase(client);
}

} // namespace msfrs
