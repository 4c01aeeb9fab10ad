// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/config.h"

#include "edge/daemon/schedule.h"
#include "edge/pacer.h"

#include <algorithm>

namespace msfrs::edge {

namespace {

/// The context of a configuration file.
struct Surroundings {
    std::string directory; ///< of the file, with '/' at its end, or empty
    std::string pluginDir;
};

/// The bounds of the rate with rate=auto.
void ReadBounds(const Fields &fields, LinkConfig &link)
{
    const std::string why = ": rate=auto estimates the rate between min= and max=, as in min=2Mbit max=80Mbit";
    const auto min = fields.need("min", why), max = fields.need("max", why);
    const auto rate = [](const Field &f) { return f.rate(1000, Pacer::MostRate, "1kbit to 1000Gbit"); };
    link.rate = rate(min);
    link.bounds = {static_cast<double>(link.rate), static_cast<double>(rate(max))};
    if (link.bounds.min > link.bounds.max)
        min.refuse("is above max=" + Shown(max.value));
}

void ReadLink(Line &line, Config &config, const Surroundings &)
{
    const auto fields = line.fields({"rate", "min", "max", "overhead", "mtu", "burst"});
    auto &link = config.link;
    link.where = line.where;
    static_assert(Pacer::MostRate == 1'000'000'000'000, "the message says so");
    const auto rate = fields.need("rate", ": give a rate, rate=none or rate=auto");
    if (rate.value == "auto") {
        ReadBounds(fields, link);
    } else {
        for (const char *const name : {"min", "max"}) {
            if (const auto f = fields.find(name))
                f->refuse("is for rate=auto alone; leave it out with rate=" + Shown(rate.value));
        }
        link.rate = rate.value == "none" ? 0 : rate.rate(1000, Pacer::MostRate, "1kbit to 1000Gbit, none and auto");
    }
    fields.read("overhead", link.overhead, &Field::size, 0, 1000, "0B to 1000B");
    fields.read("mtu", link.mtu, &Field::size, 576, 65535, "576B to 65535B");
    fields.read("burst", link.burst, &Field::size, 0, 100'000'000, "0B to 100000000B");
}

void ReadQueue(Line &line, Config &config, const Surroundings &)
{
    const auto fields = line.fields({"number", "threads", "gso", "fail-open", "conntrack", "realtime", "buffer"});
    auto &queue = config.queue;
    queue.where = line.where;
    const auto number = fields.need("number", ": the number in the NFQUEUE rule");
    queue.number = static_cast<uint32_t>(number.number(0, 65535));
    fields.read("threads", queue.threads, &Field::number, 1, MostThreads);
    if (queue.number + queue.threads > 65536)
        number.refuse("with " + std::to_string(queue.threads) + " threads the last queue would be beyond 65535");
    if (const auto f = fields.find("gso"))
        queue.gso = f->value == "auto" ? QueueConfig::Gso::Auto
            : f->value == "on"         ? QueueConfig::Gso::On
            : f->value == "off"        ? QueueConfig::Gso::Off
                                       : (f->refuse("allowed are auto, on and off"), QueueConfig::Gso::Auto);
    fields.read("fail-open", queue.failOpen, &Field::onOff);
    fields.read("conntrack", queue.conntrack, &Field::onOff);
    fields.read("realtime", queue.realtime, &Field::onOff);
    fields.read("buffer", queue.buffer, &Field::size, 4096, 256 << 20, "4KB to 256MB");
}

PluginConfig ReadPlugin(Line &line, const msfrs_kind kind, const Surroundings &around)
{
    const std::string name(line.need());
    std::vector<Setting> settings;
    for (std::string_view word; !(word = line.next()).empty();) {
        const auto equals = word.find('=');
        if (equals == word.npos)
            line.refuse("\"" + Shown(word) + "\": expected PARAMETER=VALUE");
        settings.push_back({std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))});
    }
    PluginConfig made;
    try {
        made.plugin = LoadPlugin(name, kind, around.pluginDir);
        made.params = ParseParams(made.plugin->ops(), settings);
    } catch (const ConfigError &error) {
        line.refuse(error.what());
    }
    made.text = name + (settings.empty() ? "" : " ") + PrintSettings(settings);
    made.where = line.where;
    return made;
}

void ReadLimit(Line &line, Config &config, const Surroundings &)
{
    const auto word = line.need();
    const auto n = WholeNumber(word, MostLimit);
    if (!n || *n == 0)
        line.refuse("limit " + Shown(word) + ": allowed are 1 to " + std::to_string(MostLimit) + " packets");
    config.limit = *n;
    line.end();
}

void ReadFlow(Line &line, Config &config, const Surroundings &)
{
    struct Name {
        const char *name;
        FlowBy by;
    };
    constexpr Name names[] = {{"connection", FlowBy::Connection}, {"src", FlowBy::Source},
                              {"dst", FlowBy::Destination},       {"host", FlowBy::Host}};
    const auto word = line.need();
    const auto found = std::find_if(std::begin(names), std::end(names), [&](const Name &n) { return word == n.name; });
    if (found == std::end(names))
        line.refuse("flow " + Shown(word) + ": allowed are connection, src, dst and host");
    config.flow.by = found->by;
    line.fields({"ipv6-prefix"}).read("ipv6-prefix", config.flow.prefix6, &Field::number, 1, 128);
}

void ReadInside(Line &line, Config &config, const Surroundings &)
{
    for (auto word = line.need(); !word.empty(); word = line.next()) {
        const auto network = Field{"inside", word, line.where}.addresses();
        config.flow.inside.push_back({network.family, network.range});
        if (config.flow.inside.size() > MostClasses)
            line.refuse("more than " + std::to_string(MostClasses) + " inside networks");
    }
}

std::string ClassNames(const Config &config)
{
    std::vector<const char *> names;
    for (const auto &c : config.classes)
        names.push_back(c.name.c_str());
    return names.empty() ? "declare it in a line above, class NAME" : "declared above are " + Listed(names);
}

void ReadClass(Line &line, Config &config, const Surroundings &)
{
    ClassConfig c;
    c.name = line.name("class");
    c.where = line.where;
    if (config.classNamed(c.name) != config.classes.size())
        line.refuse("class " + c.name + ": declared above already; give each class a name of its own");
    if (config.classes.size() == MostClasses)
        line.refuse("more than " + std::to_string(MostClasses) + " classes");
    const auto fields = line.fields({"weight", "parent", "aggregate", "default"});
    fields.read("weight", c.weight, &Field::weight);
    fields.read("aggregate", c.aggregate, &Field::onOff);
    if (const auto f = fields.find("parent")) {
        const auto parent = config.classNamed(f->value);
        if (parent == config.classes.size())
            f->refuse("a parent is declared before the classes below it; " + ClassNames(config));
        config.classes[parent].interior = true;
        c.parent = f->value;
    }
    if (const auto f = fields.find("default"); f && f->onOff()) {
        if (config.defaultClass != NoClass)
            f->refuse("class " + config.classes[config.defaultClass].name + " is the default already");
        config.defaultClass = config.classes.size();
    }
    config.classes.push_back(std::move(c));
}

void ReadClassify(Line &line, Config &config, const Surroundings &)
{
    ClassifyLine rule;
    const auto name = line.need();
    rule.cls = config.classNamed(name);
    if (rule.cls == config.classes.size())
        line.refuse("classify " + Shown(name) + ": there is no such class; " + ClassNames(config));
    if (config.classify.size() == MostClassify)
        line.refuse("more than " + std::to_string(MostClassify) + " lines of classify; a rules file has room for " +
                    std::to_string(MostRules));
    const auto fields = line.fields({"from", "to", "protocol", "from-port", "to-port", "length", "dscp", "kind"});
    rule.match = MatchOf(fields);
    if (const auto f = fields.limiting("length"))
        rule.length = f->range(65535, "length in bytes");
    if (const auto f = fields.limiting("dscp"))
        rule.dscp = CodePointNamed(*f).value;
    if (const auto f = fields.limiting("kind")) {
        if (f->value != "ack" && f->value != "request")
            f->refuse("allowed are any, ack and request");
        rule.kind = f->value == "ack" ? ClassifyLine::Kind::Ack : ClassifyLine::Kind::Request;
    }
    rule.where = line.where;
    for (const auto &before : config.classify) {
        if (before.cls != rule.cls && before.covers(rule))
            line.refuse("classify " + std::string(name) + ": never matches first: " + before.where +
                        " assigns all of its packets to class " + config.classes[before.cls].name);
    }
    config.classify.push_back(rule);
}

void ReadRulesFile(Line &line, Config &config, const Surroundings &around)
{
    const std::string path(line.need());
    line.end();
    config.rulesFile = path[0] == '/' ? path : around.directory + path;
    try {
        config.rules = std::make_shared<const std::vector<Rule>>(ReadRules(config.rulesFile));
    } catch (const RuleError &error) {
        line.refuse(error.what());
    }
}

void ReadMark(Line &line, Config &config, const Surroundings &)
{
    const auto fields = line.fields({"shift"});
    config.markShift = static_cast<unsigned>(fields.need("shift", ": 0 to 24").number(0, 24));
}

void ReadExcess(Line &line, Config &config, const Surroundings &)
{
    const auto fields = line.fields({"socket", "interval"});
    auto &excess = config.excess;
    excess.where = line.where;
    excess.socket = fields.need("socket", ": the path that msfrs_excess has in squid.conf").value;
    line.checkPath("socket=", excess.socket, MostSocketPath);
    fields.read("interval", excess.interval, &Field::time, 10'000'000, 10'000'000'000, "10ms to 10s");
}

const Keyword<Config, Surroundings> Keywords[] = {
    {"link", "link rate=RATE|none|auto [min=RATE max=RATE] [overhead=SIZE] [mtu=SIZE] [burst=SIZE]", false, ReadLink},
    {"queue", "queue number=N [threads=N] [gso=auto|on|off] [fail-open=on|off] [conntrack=on|off] "
              "[realtime=on|off] [buffer=SIZE]", false,
     ReadQueue},
    {"scheduler", "scheduler NAME [PARAMETER=VALUE]...", false,
     [](Line &l, Config &c, const Surroundings &around) { c.scheduler = ReadPlugin(l, MSFRS_SCHED, around); }},
    {"aqm", "aqm NAME [PARAMETER=VALUE]...", false,
     [](Line &l, Config &c, const Surroundings &around) { c.aqm = ReadPlugin(l, MSFRS_AQM, around); }},
    {"limit", "limit PACKETS", false, ReadLimit},
    {"flow", "flow connection|src|dst|host [ipv6-prefix=BITS]", false, ReadFlow},
    {"inside", "inside NETWORK...", true, ReadInside},
    {"class", "class NAME [weight=W] [parent=NAME] [aggregate=on] [default=on]", true, ReadClass},
    {"classify", "classify CLASS [from=] [to=] [protocol=] [from-port=] [to-port=] [length=] [dscp=] [kind=]", true,
     ReadClassify},
    {"rules", "rules FILE", false, ReadRulesFile},
    {"mark", "mark shift=BITS", false, ReadMark},
    {"control", "control PATH", false,
     [](Line &l, Config &c, const Surroundings &) { c.control = l.path("control", MostSocketPath); }},
    {"excess", "excess socket=PATH [interval=TIME]", false, ReadExcess},
    {"segment", "segment NAME", false,
     [](Line &l, Config &c, const Surroundings &) { c.segment = l.segment(); }},
    {"user", "user NAME", false, [](Line &l, Config &c, const Surroundings &) { c.user = l.user(); }},
};

/// A conditioner has fixed classes: those that were not declared are added with the edge's own weights.
void AddPerHopClasses(Config &config)
{
    for (const auto &c : PerHopClasses) {
        if (config.classNamed(c.name) == config.classes.size()) {
            auto &made = config.classes.emplace_back();
            made.name = c.name;
            made.weight = c.weight;
        }
    }
    if (config.defaultClass == NoClass)
        config.defaultClass = config.classNamed(PerHopClasses[static_cast<size_t>(PerHop::Be)].name);
}

void RefuseIf(const bool wrong, const std::string &message)
{
    if (wrong)
        throw RuleError(message);
}

/// Schedulers that weigh bytes against time need the link's rate, which is configured only once.
void GiveLinkRate(Config &config)
{
    const auto &plugin = config.scheduler.plugin->ops();
    for (uint32_t n = 0; n < plugin.n_params; ++n) {
        const auto &param = plugin.params[n];
        if (std::string_view(param.name) != "rate" || config.scheduler.text.find(" rate=") != std::string::npos)
            continue;
        const auto rate = static_cast<double>(config.link.rate);
        const auto line = config.scheduler.where + ": scheduler " + plugin.name + " needs the link's rate, ";
        const auto own = std::string("scheduler ") + plugin.name + " rate=BITS";
        RefuseIf(config.link.found(), line + "which rate=auto changes: give " + own);
        RefuseIf(rate < param.min || rate > param.max, line + "which is " + (config.link.rate ? "too high" : "none") +
                 ": give link rate=RATE, or " + own);
        config.scheduler.params[n].i = config.link.rate;
    }
}

void CheckClasses(Config &config, const std::string &file)
{
    if (config.classes.empty())
        config.classes.emplace_back().name = "all";
    if (config.defaultClass == NoClass) {
        std::vector<const char *> leaves;
        for (const auto &c : config.classes) {
            if (!c.interior)
                leaves.push_back(c.name.c_str());
        }
        RefuseIf(leaves.size() != 1, file + ": no class is the default, for packets that no line classifies; add "
                                            "default=on to one of " + Listed(leaves));
        config.defaultClass = config.classNamed(leaves[0]);
    }
    const auto refuseInterior = [&](const size_t n, const char *const what) {
        const auto &c = config.classes[n];
        RefuseIf(c.interior, c.where + ": class " + c.name + " has classes below it, so it cannot " + what);
    };
    refuseInterior(config.defaultClass, "be the default");
    for (const auto &c : PerHopClasses) {
        if (config.rules)
            refuseInterior(config.classNamed(c.name), "be what rules mark packets for");
    }
    for (const auto &rule : config.classify)
        refuseInterior(rule.cls, "have packets of its own: classify names a class below it");
}

std::string NoInside()
{
    return std::string("the networks of the users are missing; add a line: ") + UsageOf(Keywords, "inside");
}

/// A party of the ledger gets its classes, users and rate from Squid.
void CheckParty(const Config &config)
{
    if (config.segment.value.empty())
        return;
    const auto line = config.segment.where + ": segment " + config.segment.value + ": ";
    RefuseIf(config.flow.inside.empty(), line + NoInside());
    RefuseIf(!config.classes.empty(), line + "Squid publishes the classes; remove the lines of class");
    RefuseIf(config.rules != nullptr, line + "Squid publishes the classes; remove the line of rules");
    RefuseIf(!config.excess.socket.empty(), line + "the same bytes would be charged twice; remove the line of excess");
    RefuseIf(config.queue.threads > 1, line + "a user has one account; set threads=1");
    RefuseIf(config.link.found(),
             line + "Squid publishes the rate; set link rate=RATE or rate=none for the time without Squid");
}

/// Estimating the rate requires one thread that sees both directions of the link, and no other estimator.
void CheckFound(const Config &config)
{
    if (!config.link.found())
        return;
    const auto line = config.link.where + ": rate=auto: ";
    RefuseIf(config.flow.inside.empty(), line + NoInside());
    RefuseIf(config.queue.threads > 1, line + "requires one thread that sees both directions of a connection; set "
             "threads=1");
    RefuseIf(!config.excess.socket.empty(), line + "packets that Squid schedules by another rate must not be paced; "
             "remove the line of excess, or set msfrs_link rate=auto in squid.conf");
}

/// Steps that need the whole file: defaults and consistency checks.
void Finish(Config &config, const std::string &file, const Surroundings &around)
{
    RefuseIf(config.link.where.empty(), file + ": a line is missing: " + UsageOf(Keywords, "link"));
    RefuseIf(config.queue.where.empty(), file + ": a line is missing: " + UsageOf(Keywords, "queue"));
    if (!config.scheduler.plugin) {
        Line fifo{file, "fifo"};
        config.scheduler = ReadPlugin(fifo, MSFRS_SCHED, around);
    }
    RefuseIf(config.flow.by == FlowBy::Host && config.flow.inside.empty(), file + ": flow host: " + NoInside());
    RefuseIf(!config.excess.socket.empty() && config.flow.inside.empty(),
             config.excess.where + ": excess: " + NoInside());
    CheckParty(config);
    CheckFound(config);
    if (config.rules)
        AddPerHopClasses(config);
    CheckClasses(config, file);
    GiveLinkRate(config);
    Schedule::Check(config, file);
}

} // namespace

Config ReadConfig(std::istream &in, const std::string &file, const std::string &pluginDir)
{
    Config config;
    const auto slash = file.rfind('/');
    const Surroundings around{slash == file.npos ? "" : file.substr(0, slash + 1), pluginDir};
    ReadKeywords(in, file, Keywords, config, around);
    Finish(config, file, around);
    return config;
}

} // namespace msfrs::edge
