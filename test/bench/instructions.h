// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/perf_event.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace msfrs::bench {

/// The processor's counter of instructions that this thread retires in user mode, if the machine has one and allows
/// access (virtual machines often have none; kernel.perf_event_paranoid may be 3).
class Instructions {
public:
    Instructions()
    {
        perf_event_attr attr{};
        attr.type = PERF_TYPE_HARDWARE;
        attr.size = sizeof(attr);
        attr.config = PERF_COUNT_HW_INSTRUCTIONS;
        attr.exclude_kernel = attr.exclude_hv = 1;
        attr.disabled = 1;
        file_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
        if (file_ < 0)
            why_ = std::strerror(errno);
    }
    ~Instructions()
    {
        if (file_ >= 0)
            close(file_);
    }
    Instructions(const Instructions &) = delete;
    Instructions &operator=(const Instructions &) = delete;

    bool counts() const { return file_ >= 0; }
    const std::string &why() const { return why_; } ///< why it is not available
    void start()
    {
        if (counts()) {
            ioctl(file_, PERF_EVENT_IOC_RESET, 0);
            ioctl(file_, PERF_EVENT_IOC_ENABLE, 0);
        }
    }
    /// \returns instructions since start(); 0 if they are not counted
    uint64_t stop()
    {
        uint64_t count = 0;
        if (counts()) {
            ioctl(file_, PERF_EVENT_IOC_DISABLE, 0);
            if (read(file_, &count, sizeof(count)) != sizeof(count))
                count = 0;
        }
        return count;
    }

private:
    int file_;
    std::string why_;
};

} // namespace msfrs::bench
