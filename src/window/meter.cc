// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/meter.h"

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace msfrs {

namespace {

class SysfsCounter final : public InterfaceCounter {
public:
    SysfsCounter(const std::string &interface, const bool packets):
        directory_("/sys/class/net/" + interface + "/statistics/"), packets_(packets)
    {
    }

    std::optional<Received> read() override
    {
        const auto bytes = number("rx_bytes"), packets = packets_ ? number("rx_packets") : 0;
        return bytes && packets ? std::optional<Received>({*bytes, *packets}) : std::nullopt;
    }

private:
    // Opened for every read, once an interval: an open file would keep answering for an interface that has gone
    // and come back under the same name.
    std::optional<uint64_t> number(const char *const name) const
    {
        const int fd = open((directory_ + name).c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return {};
        char text[32];
        const auto got = ::read(fd, text, sizeof(text) - 1);
        close(fd);
        if (got <= 0)
            return {};
        text[got] = 0;
        return std::strtoull(text, nullptr, 10);
    }

    std::string directory_;
    bool packets_;
};

} // namespace

std::unique_ptr<InterfaceCounter> OpenSysfsCounter(const std::string &interface, const bool packets)
{
    return std::make_unique<SysfsCounter>(interface, packets);
}

Meter::Meter(std::unique_ptr<InterfaceCounter> counter, std::string name, const double overhead,
             const uint32_t packetOverhead, Log log):
    counter_(std::move(counter)), name_(std::move(name)), overhead_(overhead), packetOverhead_(packetOverhead),
    log_(std::move(log))
{
    if (counter_)
        last_ = counter_->read();
}

double Meter::total()
{
    const double paid = responses() + static_cast<double>(packets_);
    own_ += responses();
    payload_ = packets_ = 0;
    metered_ = false;
    if (!counter_)
        return total_ += paid;

    const auto before = last_;
    last_ = counter_->read();
    if (!last_) {
        if (!complained_)
            log_(0, "interface " + name_ + " has no receive counter; utilisation is taken from payload bytes");
        complained_ = true;
        return total_ += paid;
    }
    if (complained_) {
        log_(0, "interface " + name_ + " is back; utilisation is taken from its receive counter");
        complained_ = false;
    }
    // No earlier reading, or the counter was reset: it cannot tell the bytes since.
    if (!before || last_->bytes < before->bytes || last_->packets < before->packets)
        return total_ += paid;
    metered_ = true;
    return total_ += static_cast<double>(last_->bytes - before->bytes) +
                     static_cast<double>(last_->packets - before->packets) * packetOverhead_;
}

} // namespace msfrs
