// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A TUN interface, in this or another network namespace.
#ifndef MSFRS_DELAYLINE_TUN_DEVICE_H
#define MSFRS_DELAYLINE_TUN_DEVICE_H

#include <stdexcept>
#include <string>

namespace msfrs::delayline {

class SystemError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Owns a file descriptor.
class Descriptor {
public:
    explicit Descriptor(int fd = -1): fd_(fd) {}
    Descriptor(Descriptor &&other) noexcept: fd_(other.fd_) { other.fd_ = -1; }
    Descriptor &operator=(Descriptor &&) = delete;
    ~Descriptor();
    int get() const { return fd_; }

private:
    int fd_;
};

/// Makes or attaches to the TUN interface `spec`: NAME, or NAME@FILE where FILE is a network namespace such as
/// /run/netns/isp. The descriptor is non-blocking and gives IP packets without any header.
/// \throws SystemError with the name, what failed and why
Descriptor OpenTun(const std::string &spec);

/// Asks the kernel to run this process before ordinary ones: on a busy machine packets would be late otherwise.
/// \returns why not, empty if it was granted
std::string PreferThisProcess();

/// Gives up root for `user` and every way back to it. Does nothing when not root.
/// \throws SystemError
void DropPrivileges(const std::string &user);

} // namespace msfrs::delayline

#endif
