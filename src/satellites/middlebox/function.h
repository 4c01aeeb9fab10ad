// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Middlebox functions: what a gateway does to a packet besides sending it on, and what it costs in CPU time. Through
/// them the multi-resource schedulers (drfq, atfq) have a second resource to share.
///
/// The four are those of ATFQ's table II (Zhang et al., 2015), whose figures are DRFQ's (Ghodsi et al., 2012).
///
/// A function works on a copy. The packet that is sent on stays as it was: what encryption and redundancy elimination
/// make needs a peer that undoes it, and a gateway that has none would only break its users' traffic. The CPU time is
/// spent all the same, the result can be looked at until the next packet, and the counters tell what was found.
#ifndef MSFRS_MIDDLEBOX_FUNCTION_H
#define MSFRS_MIDDLEBOX_FUNCTION_H

#include "edge/match.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::middlebox {

using edge::FlowKey;

/// Bytes of somebody else's.
struct Span {
    const uint8_t *data;
    size_t length;

    const uint8_t *begin() const { return data; }
    const uint8_t *end() const { return data + length; }
};

/// A packet without link header that ReadKey() could read; all else in it is untrusted.
struct FunctionInput {
    Span packet;
    const FlowKey &key;

    /// Where the payload of IP begins: after an IPv4 header with its options, or an IPv6 header without extensions.
    size_t payloadAt() const { return key.family == Family::V4 ? 4u * (packet.data[0] & 0xf) : 40; }
    Span payload() const { return {packet.data + payloadAt(), packet.length - payloadAt()}; }
};

/// One figure of a function.
struct FunctionCount {
    const char *name; ///< lower case letters and '_'
    uint64_t value;
};

/// A function with its state. Not for several threads at once.
class Function {
public:
    virtual ~Function() = default;
    /// \returns what the function makes of the packet, valid until the next call; empty: it would not go on
    virtual Span process(const FunctionInput &) = 0;
    /// What was counted since the start.
    virtual std::vector<FunctionCount> counts() const = 0;
};

/// What bounds a function's memory, and its source of chance.
struct FunctionOptions {
    static constexpr size_t MinFlows = 16, MaxFlows = 1 << 20;
    static constexpr size_t MinCache = 1 << 20, MaxCache = 1 << 30;

    size_t flows = 4096;            ///< that the monitor keeps, MinFlows..MaxFlows
    size_t cache = 4 << 20;         ///< bytes of payloads that redundancy elimination keeps, MinCache..MaxCache
    std::function<uint64_t()> random; ///< 64 bits that nobody outside can foresee: hash seeds and the key
};

/// A row of ATFQ's table II and the function that it is about.
struct FunctionKind {
    const char *name;
    const char *summary;
    double paperAlpha, paperBeta; ///< CPU time of a packet of x bytes there, alpha x + beta microseconds
    std::unique_ptr<Function> (*make)(const FunctionOptions &);
};

/// All functions: forward, monitor, redundancy, encrypt.
const std::vector<FunctionKind> &FunctionKinds();
/// \returns null for a name that is none of them
const FunctionKind *FindFunction(std::string_view name);

/// \throws std::invalid_argument options out of range, std::runtime_error what OpenSSL refuses
std::unique_ptr<Function> MakeForward(const FunctionOptions &);
std::unique_ptr<Function> MakeMonitor(const FunctionOptions &);
std::unique_ptr<Function> MakeRedundancy(const FunctionOptions &);
std::unique_ptr<Function> MakeEncrypt(const FunctionOptions &);

} // namespace msfrs::middlebox

#endif
