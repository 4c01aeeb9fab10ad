// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/control.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

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

/// A socket that listens at a path, replacing a stale one.
Descriptor Listen(const std::string &path, const std::string &program)
{
    const auto address = AddressOf(path);
    if (Connect(NewSocket(0), address))
        throw SystemError("control " + path + ": another " + program + " listens there");
    struct stat found{};
    if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode))
        throw SystemError("control " + path + ": exists and is not a socket");
    unlink(path.c_str());
    auto made = NewSocket(SOCK_NONBLOCK);
    const auto before = umask(0117);
    const int bound = bind(made.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address));
    umask(before);
    if (bound < 0 || listen(made.get(), static_cast<int>(Control::MostConnections)) < 0)
        Fail("control " + path);
    return made;
}

/// The first line received, without its end.
std::optional<std::string_view> FirstLine(const std::string_view got)
{
    const auto end = got.find('\n');
    if (end == got.npos)
        return {};
    return got.substr(0, end > 0 && got[end - 1] == '\r' ? end - 1 : end);
}

} // namespace

Control::Control(event_base *const base, const std::string &path, const std::string &program, Answer answer):
    path_(path), server_(base, Listen(path, program), {MostConnections, MostCommand, Patience},
                         [answer = std::move(answer)](const std::string_view got, const std::string &) {
                             const auto line = FirstLine(got);
                             return line ? std::optional(answer(*line)) : std::nullopt;
                         })
{}

Control::~Control()
{
    unlink(path_.c_str()); // if that is no longer permitted, the next process does it
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
