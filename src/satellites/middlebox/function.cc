// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/function.h"

#include <algorithm>

namespace msfrs::middlebox {

const std::vector<FunctionKind> &FunctionKinds()
{
    static const std::vector<FunctionKind> kinds = {
        {"forward", "basic forwarding: header checked, TTL less one", 0.00286, 6.2, MakeForward},
        {"monitor", "statistical monitoring: packets and bytes of the largest flows", 0.0008, 12.1, MakeMonitor},
        {"redundancy", "redundancy elimination: payload that was seen before", 0.006987, 10.97, MakeRedundancy},
        {"encrypt", "IPsec encryption: AES-128-GCM over the payload", 0.015, 84.5, MakeEncrypt},
    };
    return kinds;
}

const FunctionKind *FindFunction(const std::string_view name)
{
    const auto &kinds = FunctionKinds();
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto &k) { return name == k.name; });
    return found == kinds.end() ? nullptr : &*found;
}

} // namespace msfrs::middlebox
