// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/function_keywords.h"

#include "plugin/number.h"

#include <algorithm>
#include <charconv>

namespace msfrs::edge {

namespace {

/// A decimal number with nothing behind it but `unit`.
double Decimal(const Field &f, const std::string_view unit, const double least, const double most)
{
    auto text = f.value;
    const bool united = text.size() >= unit.size() && text.substr(text.size() - unit.size()) == unit;
    text.remove_suffix(united ? unit.size() : 0);
    double value = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    if (!united || read.ec != std::errc() || read.ptr != end || !(value >= least && value <= most)) // refuses NaN, too
        f.refuse("allowed are " + Number(least) + std::string(unit) + " to " + Number(most) + std::string(unit));
    return value;
}

std::string KindNames()
{
    std::vector<const char *> names;
    for (const auto &kind : FunctionKinds())
        names.push_back(kind.name);
    return Listed(names);
}

} // namespace

void ReadCpu(Line &line, Config &config, const Surroundings &)
{
    const auto fields = line.fields({"share"});
    const auto share = fields.need("share", ": what functions may have of a processor, in percent");
    config.cpu.share = Decimal(share, "%", 100 * CpuConfig::LeastShare, 100) / 100;
}

void ReadFunction(Line &line, Config &config, const Surroundings &)
{
    FunctionConfig f;
    const auto name = line.need();
    f.kind = FindFunction(name);
    if (!f.kind)
        line.refuse("function " + Shown(name) + ": allowed are " + KindNames());
    for (const auto &other : config.cpu.functions) {
        if (other.kind == f.kind)
            line.refuse("function " + std::string(name) + ": it was declared before");
    }
    const auto fields = line.fields({"alpha", "beta", "passes", "flows", "cache"});
    const char *const why = ": microseconds of processor time; msfrs-edge --calibrate measures them";
    f.time.alpha = Decimal(fields.need("alpha", why), "", 0, ProcessingTime::MaxAlpha);
    f.time.beta = Decimal(fields.need("beta", why), "", 0, ProcessingTime::MaxBeta);
    if (const auto passes = fields.find("passes"))
        f.passes = static_cast<unsigned>(passes->number(1, FunctionConfig::MostPasses));
    if (const auto flows = fields.find("flows"))
        f.options.flows = static_cast<size_t>(
            flows->number(int64_t{FunctionOptions::MinFlows}, int64_t{FunctionOptions::MaxFlows}));
    static_assert(FunctionOptions::MinCache == 1 << 20 && FunctionOptions::MaxCache == 1 << 30, "the message says so");
    if (const auto cache = fields.find("cache"))
        f.options.cache = static_cast<size_t>(cache->size(int64_t{FunctionOptions::MinCache},
                                                          int64_t{FunctionOptions::MaxCache}, "1MB to 1024MB"));
    config.cpu.functions.push_back(f);
}

size_t FunctionOf(const Field &f, const Config &config)
{
    const auto &functions = config.cpu.functions;
    const auto found = std::find_if(functions.begin(), functions.end(),
                                    [&](const FunctionConfig &known) { return f.value == known.kind->name; });
    if (found == functions.end())
        f.refuse("no line `function " + Shown(f.value) + "` before this one; there can be " + KindNames());
    return static_cast<size_t>(found - functions.begin());
}

void CheckFunctions(const Config &config, const std::string &file)
{
    if (config.cpu.functions.empty())
        return;
    // Whole packets wait with us, and the longest has 64 KB.
    constexpr uint32_t Most = 10'000;
    if (config.limit > Most)
        throw RuleError(file + ": limit " + std::to_string(config.limit) + ": with functions, which have whole packets "
                        "copied, allowed are 1 to " + std::to_string(Most));
    for (const auto &c : config.classes) {
        if (c.interior && c.function)
            throw RuleError(c.where + ": class " + c.name + " has classes below it, so it cannot have a function: "
                            "they can");
    }
}

} // namespace msfrs::edge
