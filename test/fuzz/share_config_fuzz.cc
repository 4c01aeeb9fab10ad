// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The configuration of msfrs-share. Any file is either refused with its name, in printable characters, or gives a
/// configuration within its ranges.
#include "config/fields.h"
#include "require.h"
#include "satellites/share/config.h"

#include <sstream>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs::share;
    std::istringstream in(std::string(reinterpret_cast<const char *>(data), size));
    try {
        const auto config = ReadConfig(in, "fuzzed");
        const auto &sharing = config.sharing;
        Require(sharing.share > 0 && sharing.share < 1 && !sharing.others.empty());
        Require(sharing.others.size() <= MostOthers && sharing.interval >= 50'000'000);
        Require(!config.store.host.empty() && config.store.port != 0 && config.segment.size() > 1);
    } catch (const msfrs::RuleError &error) {
        const std::string_view message(error.what());
        Require(message.substr(0, 6) == "fuzzed" && message.size() < 9000);
        for (const char c : message)
            Require(c >= ' ' && c <= '~');
    }
    return 0;
}
