// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/functions_file.h"

#include "config/keywords.h"

namespace msfrs::middlebox {

namespace {

constexpr const char *CpuUsage = "cpu share=PERCENT";
constexpr const char *FunctionUsage = "function NAME class=CLASS alpha=US beta=US [passes=N] [flows=N] [cache=SIZE]";

std::string KindNames()
{
    std::vector<const char *> names;
    for (const auto &kind : FunctionKinds())
        names.push_back(kind.name);
    return Listed(names);
}

/// The index of the class in a field.
size_t ClassOf(const Field &f, const edge::Config &config)
{
    std::vector<const char *> leaves;
    for (const auto &c : config.classes) {
        if (c.name == f.value && !c.interior)
            return static_cast<size_t>(&c - config.classes.data());
        if (!c.interior)
            leaves.push_back(c.name.c_str());
    }
    f.refuse("allowed are the classes that have packets: " + Listed(leaves));
}

void ReadCpu(Line &line, CpuConfig &cpu)
{
    const auto fields = line.fields({"share"});
    const auto share = fields.need("share", ": the functions' share of a processor, in percent");
    cpu.share = share.decimal("%", 100 * CpuConfig::LeastShare, 100) / 100;
}

void ReadFunction(Line &line, CpuConfig &cpu, const edge::Config &config)
{
    FunctionConfig f;
    const auto name = line.need();
    f.kind = FindFunction(name);
    if (!f.kind)
        line.refuse("function " + Shown(name) + ": allowed are " + KindNames());
    const auto fields = line.fields({"class", "alpha", "beta", "passes", "flows", "cache"});
    const auto cls = fields.need("class", ": the class of its packets");
    f.cls = ClassOf(cls, config);
    for (const auto &other : cpu.functions) {
        if (other.cls == f.cls)
            cls.refuse("its packets pass " + std::string(other.kind->name) + " already");
    }
    const char *const why = ": microseconds of processor time; msfrs-middlebox --calibrate measures them";
    f.time.alpha = fields.need("alpha", why).decimal("", 0, ProcessingTime::MaxAlpha);
    f.time.beta = fields.need("beta", why).decimal("", 0, ProcessingTime::MaxBeta);
    if (const auto passes = fields.find("passes"))
        f.passes = static_cast<unsigned>(passes->number(1, FunctionConfig::MostPasses));
    if (const auto flows = fields.find("flows"))
        f.options.flows = static_cast<size_t>(
            flows->number(int64_t{FunctionOptions::MinFlows}, int64_t{FunctionOptions::MaxFlows}));
    static_assert(FunctionOptions::MinCache == 1 << 20 && FunctionOptions::MaxCache == 1 << 30, "the message says so");
    if (const auto cache = fields.find("cache"))
        f.options.cache = static_cast<size_t>(cache->size(int64_t{FunctionOptions::MinCache},
                                                          int64_t{FunctionOptions::MaxCache}, "1MB to 1024MB"));
    cpu.functions.push_back(f);
}

} // namespace

CpuConfig ReadFunctions(std::istream &in, const std::string &file, const edge::Config &config)
{
    CpuConfig cpu;
    Lines lines(in, file);
    bool shared = false;
    for (std::string_view text; lines.next(text);) {
        Line line{lines.where(), text};
        const auto word = line.next();
        if (word == "function") {
            line.usage = FunctionUsage;
            ReadFunction(line, cpu, config);
        } else if (word == "cpu" && !shared) {
            line.usage = CpuUsage;
            ReadCpu(line, cpu);
            shared = true;
        } else {
            line.refuse("\"" + Shown(word) + "\": expected " + FunctionUsage + ", or once " + CpuUsage);
        }
    }
    if (cpu.functions.empty())
        throw RuleError(file + ": a line is missing: " + FunctionUsage);
    return cpu;
}

CpuConfig ReadFunctions(const std::string &path, const edge::Config &config)
{
    auto in = OpenFile(path);
    return ReadFunctions(in, path, config);
}

void CheckConfig(const edge::Config &config, const std::string &file)
{
    const auto refuse = [&](const bool there, const char *const what) {
        if (there)
            throw RuleError(file + ": " + what);
    };
    refuse(config.link.found(), "link rate=auto: msfrs-middlebox cannot estimate the rate; set link rate=RATE");
    refuse(config.queue.threads > 1, "threads: msfrs-middlebox has one thread; remove threads=");
    refuse(config.rules != nullptr, "rules: msfrs-middlebox neither polices nor marks; remove the line");
    refuse(config.markShift.has_value(), "mark: msfrs-middlebox neither polices nor marks; remove the line");
    refuse(!config.excess.socket.empty(), "excess: msfrs-middlebox does not report to Squid; remove the line");
    refuse(!config.control.value.empty(),
           "control: msfrs-middlebox has no control socket; it prints its figures at the end");
    // This process queues whole packets of up to 64 KB.
    constexpr uint32_t Most = 10'000;
    if (config.limit > Most)
        throw RuleError(file + ": limit " + std::to_string(config.limit) + ": whole packets are held; allowed are 1 "
                        "to " + std::to_string(Most));
}

} // namespace msfrs::middlebox
