// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Common to the daemons: file descriptors and system errors.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace msfrs {

class SystemError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Throws `what` and the message of errno.
[[noreturn]] inline void Fail(const std::string &what) { throw SystemError(what + ": " + std::strerror(errno)); }

/// Owns a file descriptor.
class Descriptor {
public:
    explicit Descriptor(const int fd = -1): fd_(fd) {}
    Descriptor(Descriptor &&other) noexcept: fd_(other.fd_) { other.fd_ = -1; }
    Descriptor &operator=(Descriptor &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor()
    {
        if (fd_ >= 0)
            close(fd_);
    }
    int get() const { return fd_; }

private:
    int fd_;
};

} // namespace msfrs
