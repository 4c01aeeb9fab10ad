// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Rules of the DiffServ edge. Any file is either refused with its name and a line, in printable characters, or gives
/// rules within their ranges, from which a classifier can be built.
#include "edge/classifier.h"
#include "edge/rules.h"
#include "require.h"

#include <sstream>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs;
    using namespace edge;
    std::istringstream in(std::string(reinterpret_cast<const char *>(data), size));
    std::vector<Rule> rules;
    try {
        rules = ReadRules(in, "fuzzed");
    } catch (const RuleError &error) {
        const std::string_view message(error.what());
        Require(message.substr(0, 7) == "fuzzed:" && message.size() < 500);
        for (const char c : message)
            Require(c >= ' ' && c <= '~');
        return 0;
    }
    std::vector<Match> matches;
    for (const auto &r : rules) {
        Require(!r.name.empty() && r.mark.value < 64);
        if (r.police)
            Policer(*r.police); // an exception here would end the fuzzer
        matches.push_back(r.match);
    }
    if (matches.size() > 3) // building is slow: rarely, and with few rules
        matches.resize(3);
    if (size % 64 == 0)
        Classifier(std::move(matches));
    return 0;
}
