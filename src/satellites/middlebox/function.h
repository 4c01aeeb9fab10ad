// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Middlebox functions: a gateway's processing of a packet besides forwarding, and its cost in CPU time. They provide a
/// second resource for the multi-resource schedulers (drfq, atfq) to share.
///
/// The four are those of ATFQ's table II (Zhang et al., 2015), whose figures are from DRFQ (Ghodsi et al., 2012).
///
/// A function works on a copy. The forwarded packet stays unchanged: the output of encryption and redundancy
/// elimination needs a peer that reverses it, and a gateway without one would only break its users' traffic. The CPU
/// time is spent nevertheless, the result can be inspected until the next packet, and counters record the findings.
#pragma once

#include "edge/match.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace msfrs::middlebox {

using edge::FlowKey;

/// A non-owning range of bytes.
struct Span {
    const uint8_t *data;
    size_t length;

    const uint8_t *begin() const { return data; }
    const uint8_t *end() const { return data + length; }
};

/// A packet without link header that ReadKey() has accepted; the rest of it is untrusted.
struct FunctionInput {
    Span packet;
    const FlowKey &key;

    /// Start of the IP payload: after an IPv4 header with its options, or an IPv6 header without extensions.
    size_t payloadAt() const { return key.family == Family::V4 ? 4u * (packet.data[0] & 0xf) : 40; }
    Span payload() const { return {packet.data + payloadAt(), packet.length - payloadAt()}; }
};

/// One figure of a function.
struct FunctionCount {
    const char *name; ///< lower case letters and '_'
    uint64_t value;
};

/// A function with its state. Not thread-safe.
class Function {
public:
    virtual ~Function() = default;
    /// \returns the function's output for the packet, valid until the next call; empty: the packet would not be
    /// forwarded
    virtual Span process(const FunctionInput &) = 0;
    /// Counts since the start.
    virtual std::vector<FunctionCount> counts() const = 0;
};

/// Bounds of a function's memory, and its source of randomness.
struct FunctionOptions {
    static constexpr size_t MinFlows = 16, MaxFlows = 1 << 20;
    static constexpr size_t MinCache = 1 << 20, MaxCache = 1 << 30;

    size_t flows = 4096;            ///< kept by the monitor, MinFlows..MaxFlows
    size_t cache = 4 << 20;         ///< bytes of payloads kept by redundancy elimination, MinCache..MaxCache
    std::function<uint64_t()> random; ///< 64 unpredictable bits: hash seeds and the key
};

/// A row of ATFQ's table II and its function.
struct FunctionKind {
    const char *name;
    const char *summary;
    double paperAlpha, paperBeta; ///< CPU time of a packet of x bytes in the paper, alpha x + beta microseconds
    std::unique_ptr<Function> (*make)(const FunctionOptions &);
};

/// All functions: forward, monitor, redundancy, encrypt.
const std::vector<FunctionKind> &FunctionKinds();
/// \returns null for an unknown name
const FunctionKind *FindFunction(std::string_view name);

/// \throws std::invalid_argument options out of range, std::runtime_error an error of OpenSSL
std::unique_ptr<Function> MakeForward(const FunctionOptions &);
std::unique_ptr<Function> MakeMonitor(const FunctionOptions &);
std::unique_ptr<Function> MakeRedundancy(const FunctionOptions &);
std::unique_ptr<Function> MakeEncrypt(const FunctionOptions &);

} // namespace msfrs::middlebox
