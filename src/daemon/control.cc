// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/control.h"

#include <algorithm>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <tuple>

namespace msfrs {

namespace {

Descriptor NewSocket(const int flags)
{
    Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    if (made.get() < 0)
        Fail("no unix socket");
    return made;
}

/// \throws SystemError
sockaddr_un AddressOf(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        throw SystemError("control " + path + ": longer than " + std::to_string(sizeof(address.sun_path) - 1));
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

bool Connect(const Descriptor &s, const sockaddr_un &to)
{
    return connect(s.get(), reinterpret_cast<const sockaddr *>(&to), sizeof(to)) == 0;
}

} // namespace

/// A client that asks.
struct Control::Connection {
    Control &control;
    uint64_t number; ///< of those accepted, this one
    std::unique_ptr<event, void (*)(event *)> deadline{nullptr, event_free};
    bool answered = false;

    /// From now on there is Patience for what comes next, however often a little of it comes.
    void wait() const
    {
        const timeval patience{Patience, 0};
        evtimer_add(deadline.get(), &patience);
    }

    void readable(bufferevent *const client)
    {
        if (answered)
            return;
        auto *const in = bufferevent_get_input(client);
        const std::unique_ptr<char, void (*)(void *)> line(evbuffer_readln(in, nullptr, EVBUFFER_EOL_CRLF), std::free);
        if (!line) {
            if (evbuffer_get_length(in) > MostCommand)
                control.close(client);
            return; // otherwise there is more to come
        }
        answered = true;
        bufferevent_disable(client, EV_READ);
        wait();
        const auto text = control.answer_(line.get());
        // writable() is called once all of it was sent.
        bufferevent_write(client, text.data(), text.size());
    }
};

Control::Control(event_base *const base, const std::string &path, const std::string &program, Answer answer):
    base_(base), path_(path), answer_(std::move(answer)), socket_(NewSocket(SOCK_NONBLOCK))
{
    const auto address = AddressOf(path);
    if (Connect(NewSocket(0), address))
        throw SystemError("control " + path + ": another " + program + " listens there");
    struct stat found{};
    if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode))
        throw SystemError("control " + path + ": there is something that is no socket");
    unlink(path.c_str());
    const auto before = umask(0117);
    const int bound = bind(socket_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address));
    umask(before);
    if (bound < 0 || listen(socket_.get(), static_cast<int>(MostConnections)) < 0)
        Fail("control " + path);
    acceptable_ = std::make_unique<Event>(base, socket_.get(), EV_READ, [this] { accept(); });
}

Control::~Control()
{
    while (!connections_.empty())
        close(connections_.begin()->first);
    unlink(path_.c_str()); // where that is not permitted any more, the next one does it
}

void Control::accept()
{
    const int fd = accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (connections_.size() == MostConnections)
        makeRoom();
    auto *const client = bufferevent_socket_new(base_, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!client) {
        ::close(fd);
        return;
    }
    auto &connection = connections_[client];
    connection = std::make_unique<Connection>(Connection{*this, ++accepted_});
    connection->deadline.reset(evtimer_new(
        base_,
        [](evutil_socket_t, short, void *c) {
            void *self = nullptr;
            bufferevent_getcb(static_cast<bufferevent *>(c), nullptr, nullptr, nullptr, &self);
            static_cast<Connection *>(self)->control.close(static_cast<bufferevent *>(c));
        },
        client));
    bufferevent_setcb(
        client, [](bufferevent *c, void *self) { static_cast<Connection *>(self)->readable(c); },
        [](bufferevent *c, void *self) {
            if (static_cast<Connection *>(self)->answered)
                static_cast<Connection *>(self)->control.close(c);
        },
        [](bufferevent *c, short, void *self) { static_cast<Connection *>(self)->control.close(c); }, connection.get());
    if (!connection->deadline) {
        close(client);
        return;
    }
    connection->wait();
    bufferevent_setwatermark(client, EV_READ, 0, 2 * MostCommand);
    bufferevent_enable(client, EV_READ | EV_WRITE);
}

void Control::makeRoom()
{
    const auto oldest = std::min_element(connections_.begin(), connections_.end(), [](const auto &a, const auto &b) {
        return std::tie(a.second->answered, a.second->number) < std::tie(b.second->answered, b.second->number);
    });
    close(oldest->first);
}

void Control::close(bufferevent *const client)
{
    bufferevent_free(client);
    connections_.erase(client);
}

std::string Ask(const std::string &path, const std::string &program, const std::string &command)
{
    const auto s = NewSocket(0);
    if (!Connect(s, AddressOf(path)))
        Fail("control " + path + ": no answer; does " + program + " run?");
    const timeval patience{30, 0};
    setsockopt(s.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const auto line = command + "\n";
    if (send(s.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        Fail("control " + path);
    std::string answer;
    char piece[4096];
    ssize_t got = 0;
    while ((got = recv(s.get(), piece, sizeof(piece), 0)) > 0)
        answer.append(piece, static_cast<size_t>(got));
    if (got < 0)
        Fail("control " + path);
    if (answer.empty())
        throw SystemError("control " + path + ": the connection was closed without an answer");
    return answer;
}

} // namespace msfrs
