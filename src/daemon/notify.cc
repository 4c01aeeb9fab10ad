// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/notify.h"

#include "daemon/descriptor.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/un.h>

namespace msfrs {

void SayReady()
{
    std::puts("ready");
    std::fflush(stdout);
    const char *const path = std::getenv("NOTIFY_SOCKET");
    sockaddr_un to{};
    const auto length = path ? std::strlen(path) : 0;
    if (length < 2 || length >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path, length);
    if (path[0] == '@')
        to.sun_path[0] = 0; // an abstract socket name
    const Descriptor s(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    constexpr char Ready[] = "READY=1";
    sendto(s.get(), Ready, sizeof(Ready) - 1, MSG_NOSIGNAL, reinterpret_cast<const sockaddr *>(&to),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

} // namespace msfrs
