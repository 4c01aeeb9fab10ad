// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Parameters of plugins: the input is one name=value a line. It is either refused with a message that contains the
/// faulty part, or gives values within their ranges that parse again to the same.
#include "plugin/loader.h"
#include "require.h"
#include "support/params_table.h"

#include <cstring>
#include <string_view>

namespace {

using namespace msfrs;
using test::Table;

std::vector<Setting> Settings(std::string_view text)
{
    std::vector<Setting> settings;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const auto name = line.substr(0, line.find('='));
        settings.push_back({std::string(name), std::string(line.substr(std::min(name.size() + 1, line.size())))});
    }
    return settings;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    msfrs_plugin plugin{};
    plugin.name = "fuzzed";
    plugin.params = Table;
    plugin.n_params = std::size(Table);
    const auto settings = Settings({reinterpret_cast<const char *>(data), size});
    std::vector<msfrs_value> values;
    try {
        values = ParseParams(plugin, settings);
    } catch (const ConfigError &error) {
        bool named = false;
        for (const auto &s : settings)
            named = named || std::string_view(error.what()).find(s.name.c_str()) != std::string_view::npos;
        Require(named);
        return 0;
    }
    Require(values[0].i >= -5 && values[0].i <= 1'000'000);
    Require(values[1].d >= 0 && values[1].d <= 100);
    Require(values[2].i == 0 || values[2].i == 1);
    Require(values[3].i >= 0 && values[3].i <= 2);

    auto printed = PrintSettings(settings);
    for (auto &c : printed)
        c = c == ' ' ? '\n' : c;
    const auto again = ParseParams(plugin, Settings(printed));
    Require(std::memcmp(values.data(), again.data(), values.size() * sizeof(msfrs_value)) == 0);
    return 0;
}
