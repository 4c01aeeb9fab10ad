// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What the link carried: the interface's own receive counter, or payload with an overhead factor where there
/// is no interface or it has gone.
#ifndef MSFRS_WINDOW_METER_H
#define MSFRS_WINDOW_METER_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace msfrs {

/// What an interface received since some fixed time.
struct Received {
    uint64_t bytes = 0;
    uint64_t packets = 0;
};

/// Reads growing counts.
class InterfaceCounter {
public:
    virtual ~InterfaceCounter() = default;
    /// \returns nothing when the interface is gone
    virtual std::optional<Received> read() = 0;
};

/// The kernel's receive counters of an interface.
std::unique_ptr<InterfaceCounter> OpenSysfsCounter(const std::string &interface);

/// Bytes on the link. The first failure of the counter is logged, and payload takes over until the counter
/// answers again, which is logged too.
class Meter {
public:
    using Log = std::function<void(int level, const std::string &)>;
    /// \param counter may be null: payload only
    /// \param overhead share added to payload bytes, 0..1
    /// \param packetOverhead bytes of each packet that the link carries and the counter leaves out
    Meter(std::unique_ptr<InterfaceCounter> counter, std::string name, double overhead, uint32_t packetOverhead,
          Log log);

    /// `bytes` of responses were read.
    void payload(int64_t bytes) { payload_ += bytes; }
    /// `bytes` of packets, headers included, passed beside the responses.
    void packets(int64_t bytes) { packets_ += bytes; }
    /// Bytes since the meter was made; never goes back. Reads the counter.
    double total();
    /// What responses brought of that by their payload and the overhead, bytes; as of the last total().
    double own() const { return own_; }
    /// Whether the last total() was the counter's word.
    bool metered() const { return metered_; }

private:
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

#endif
