// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/delayline/tun_device.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace msfrs::delayline {

namespace {

Descriptor OpenFile(const std::string &path, int flags, const char *const what = "")
{
    Descriptor file(open(path.c_str(), flags | O_CLOEXEC));
    if (file.get() < 0)
        Fail(what + path);
    return file;
}

/// Moves the process into a network namespace for the lifetime of the object.
class Visit {
public:
    explicit Visit(const std::string &path): home_(OpenFile("/proc/self/ns/net", O_RDONLY))
    {
        const Descriptor there = OpenFile(path, O_RDONLY, "network namespace ");
        if (setns(there.get(), CLONE_NEWNET) < 0)
            Fail("cannot join the network namespace " + path);
    }
    // Ends the process if it cannot return: continuing in the wrong network would be worse.
    ~Visit()
    {
        if (setns(home_.get(), CLONE_NEWNET) < 0)
            std::terminate();
    }
    Visit(const Visit &) = delete;

private:
    Descriptor home_;
};

Descriptor Attach(const std::string &name)
{
    ifreq request{};
    if (name.empty() || name.size() >= sizeof(request.ifr_name))
        throw SystemError("interface name \"" + name + "\": 1 to " + std::to_string(sizeof(request.ifr_name) - 1) +
                          " characters are allowed");
    std::memcpy(request.ifr_name, name.data(), name.size());
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    // The device belongs to the namespace in which its file is opened.
    Descriptor tun = OpenFile("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (ioctl(tun.get(), TUNSETIFF, &request) < 0)
        Fail("cannot create the TUN interface " + name +
             (errno == EPERM ? " (requires CAP_NET_ADMIN)" : errno == EBUSY ? " (another process uses it)" : ""));
    return tun;
}

} // namespace

Descriptor OpenTun(const std::string &spec)
{
    const auto at = spec.find('@');
    if (at == spec.npos)
        return Attach(spec);
    const Visit visit(spec.substr(at + 1));
    return Attach(spec.substr(0, at));
}

} // namespace msfrs::delayline
