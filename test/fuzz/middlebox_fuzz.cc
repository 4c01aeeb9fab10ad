// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Packets from the network for every middlebox function, which keeps its state over all packets. A parsed packet is
/// accepted and left unchanged.
#include "edge/packet.h"
#include "satellites/middlebox/function.h"
#include "require.h"

#include <algorithm>
#include <random>

namespace {

using namespace msfrs::middlebox;

std::vector<std::unique_ptr<Function>> AllFunctions()
{
    FunctionOptions options{FunctionOptions::MinFlows, FunctionOptions::MinCache,
                            [random = std::mt19937_64(1)]() mutable { return random(); }};
    std::vector<std::unique_ptr<Function>> all;
    for (const auto &kind : FunctionKinds())
        all.push_back(kind.make(options));
    return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    const auto key = msfrs::edge::ReadKey(data, size);
    if (!key)
        return 0;
    static const auto functions = AllFunctions();
    const std::vector<uint8_t> before(data, data + size);
    for (const auto &f : functions) {
        const auto made = f->process({{data, size}, *key});
        Require(made.length == 0 || (made.length >= 20 && made.data[0] == data[0]));
        Require(std::equal(before.begin(), before.end(), data));
    }
    return 0;
}
