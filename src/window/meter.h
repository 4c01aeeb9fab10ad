// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Bytes that the link carried: the receive counter of the interface, or payload with an overhead factor while there is
/// no interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace msfrs {

/// What an interface received since some fixed time.
struct Received {
    uint64_t bytes = 0;   ///< as the interface counts
    uint64_t packets = 0;
};

/// Source of the receive counters of an interface.
class InterfaceCounter {
public:
    virtual ~InterfaceCounter() = default;
    /// \returns nothing while there is no such interface
    virtual std::optional<Received> read() = 0;
};

/// The receive counters of an interface in Linux' sysfs; `interface` is its name. Does not throw.
/// \param packets whether to read the packet counter too: each counter is a file that is opened for every reading
std::unique_ptr<InterfaceCounter> OpenSysfsCounter(const std::string &interface, bool packets);

/// Bytes on the link, S_m of the paper. When the counter fails, this is logged once, and payload replaces it until the
/// counter answers again, which is logged too.
class Meter {
public:
    using Log = std::function<void(int level, const std::string &)>;
    /// \param counter may be null: payload only
    /// \param name of the interface, for the log
    /// \param overhead share added to payload bytes, 0..1
    /// \param packetOverhead bytes of each packet that the link carries and the counter does not count, 0..256
    /// \param log level as in msfrs_host::log
    Meter(std::unique_ptr<InterfaceCounter> counter, std::string name, double overhead, uint32_t packetOverhead,
          Log log);

    /// `bytes` >= 0 of responses were read.
    void payload(int64_t bytes) { payload_ += bytes; }
    /// `bytes` >= 0 of packets, headers included, arrived beside the responses.
    void packets(int64_t bytes) { packets_ += bytes; }
    /// Reads the counter. \returns bytes since the meter was made; never decreases
    double total();
    /// The same as of the last reading if the counter was readable, for callers that do not need the latest value.
    double latest() { return metered_ ? total_ : total(); }
    /// The responses' part of total(), by payload and overhead, bytes.
    double own() const { return own_ + responses(); }
    /// Whether the last total() came from the counter.
    bool metered() const { return metered_; }

private:
    double responses() const { return static_cast<double>(payload_) * (1.0 + overhead_); } ///< since the last total()

    std::unique_ptr<InterfaceCounter> counter_;
    std::string name_;
    double overhead_;
    uint32_t packetOverhead_;
    Log log_;
    int64_t payload_ = 0, packets_ = 0; ///< since the last total()
    double total_ = 0, own_ = 0;
    std::optional<Received> last_;
    bool metered_ = false, complained_ = false;
};

} // namespace msfrs
