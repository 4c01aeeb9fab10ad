// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/config.h"

#include "daemon/descriptor.h"
#include "config/keywords.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace msfrs::share {

namespace {

constexpr size_t MostPath = 4095, MostHost = 253, MostPassword = 512;

void ReadLink(Line &line, Config &config)
{
    config.store.link = line.name("link");
    line.end();
}

void ReadGateway(Line &line, Config &config)
{
    auto &sharing = config.sharing;
    sharing.gateway = line.name("gateway");
    const auto fields = line.fields({"share", "interval"});
    const auto share = fields.need("share", ": this gateway's share of the link while no other is known, "
                                            "1% to 99%");
    sharing.share = share.decimal("%", 1, 99) / 100;
    if (const auto f = fields.find("interval"))
        sharing.interval = f->time(50'000'000, 500'000'000, "50ms to 500ms");
}

void ReadOther(Line &line, Config &config)
{
    auto &others = config.sharing.others;
    auto name = line.name("gateway");
    line.end();
    if (std::find(others.begin(), others.end(), name) != others.end())
        line.refuse("other " + name + ": declared twice");
    if (others.size() == MostOthers)
        line.refuse("other " + name + ": allowed are " + std::to_string(MostOthers) + " gateways beside this one");
    others.push_back(std::move(name));
}

/// Name or address of a host.
std::string HostOf(const Field &f)
{
    const auto good = [](const char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
            c == ':' || c == '_';
    };
    if (f.value.empty() || f.value.size() > MostHost || !std::all_of(f.value.begin(), f.value.end(), good))
        f.refuse("expected an address or the name of a host");
    return std::string(f.value);
}

void ReadStore(Line &line, Config &config)
{
    const auto fields = line.fields({"host", "port", "tls", "name", "ca", "certificate", "key", "user",
                                     "password-file", "database"});
    auto &store = config.store;
    store.host = HostOf(fields.need("host", ": the host of Valkey or Redis"));
    if (const auto f = fields.find("port"))
        store.port = static_cast<uint16_t>(f->number(1, 65535));
    if (const auto f = fields.find("tls"))
        store.tls = f->onOff();
    if (const auto f = fields.find("name"))
        store.name = HostOf(*f);
    const auto path = [&](const char *const name) {
        const auto f = fields.find(name);
        if (f)
            line.checkPath(std::string(name) + "=", f->value, MostPath);
        return f ? std::string(f->value) : std::string();
    };
    store.ca = path("ca");
    store.certificate = path("certificate");
    store.key = path("key");
    config.passwordFile = {path("password-file"), line.where};
    for (const auto name : {"name", "ca", "certificate", "key"}) {
        if (const auto f = fields.find(name); f && !store.tls)
            f->refuse("requires tls=on");
    }
    if (store.certificate.empty() != store.key.empty())
        fields.refuse("certificate= and key= must be given together");
    if (const auto f = fields.find("user")) {
        if (!GoodName(f->value) || config.passwordFile.value.empty())
            f->refuse("expected a name of letters, digits, '-', '_' and '.', and password-file=PATH");
        store.user = f->value;
    }
    if (const auto f = fields.find("database"))
        store.database = static_cast<unsigned>(f->number(0, 15));
}

const Keyword<Config> Keywords[] = {
    {"link", "link NAME", false, ReadLink},
    {"gateway", "gateway NAME share=PERCENT [interval=TIME]", false, ReadGateway},
    {"other", "other NAME", true, ReadOther},
    {"store", "store host=HOST [port=N] [tls=on] [name=HOST] [ca=FILE] [certificate=FILE key=FILE] "
              "[user=NAME] [password-file=FILE] [database=N]", false, ReadStore},
    {"segment", "segment NAME", false, [](Line &l, Config &c) { c.segment = l.segment().value; }},
    {"control", "control PATH", false, [](Line &l, Config &c) { c.control = l.path("control", MostSocketPath); }},
    {"user", "user NAME", false, [](Line &l, Config &c) { c.user = l.user(); }},
};

} // namespace

Config ReadConfig(std::istream &in, const std::string &file)
{
    Config config;
    config.store.host.clear();
    config.store.link.clear();
    config.store.timeToLive = TimeToLive;
    ReadKeywords(in, file, Keywords, config);
    const auto need = [&](const bool there, const char *const name) {
        if (!there)
            throw RuleError(file + ": a line is missing: " + UsageOf(Keywords, name));
    };
    auto &sharing = config.sharing;
    sharing.store = "store " + config.store.host + " port " + std::to_string(config.store.port);
    need(!config.store.link.empty(), "link");
    need(!sharing.gateway.empty(), "gateway");
    need(!sharing.others.empty(), "other");
    need(!config.store.host.empty(), "store");
    need(!config.segment.empty(), "segment");
    if (std::find(sharing.others.begin(), sharing.others.end(), sharing.gateway) != sharing.others.end())
        throw RuleError(file + ": other " + sharing.gateway + ": is the name of this gateway");
    return config;
}

Config ReadConfig(const std::string &path)
{
    auto in = OpenFile(path);
    return ReadConfig(in, path);
}

void ReadPassword(Config &config)
{
    const auto &path = config.passwordFile.value;
    if (path.empty())
        return;
    const auto refuse = [&](const std::string &what) {
        throw RuleError(config.passwordFile.where + ": password-file=" + path + ": " + what);
    };
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat found{};
    if (file.get() < 0 || fstat(file.get(), &found) < 0)
        refuse(std::string("cannot be opened: ") + std::strerror(errno));
    if (!S_ISREG(found.st_mode))
        refuse("is not a file");
    if (found.st_mode & (S_IRWXO | S_IWGRP))
        refuse("everybody may read it, or its group may write it: chmod 640 " + path);
    std::string text(MostPassword + 2, 0);
    const auto got = read(file.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    text.resize(std::min(text.find_first_of("\r\n"), text.size()));
    if (text.empty() || text.size() > MostPassword)
        refuse("its first line is the password, of 1 to " + std::to_string(MostPassword) + " bytes");
    config.store.password = text;
}

} // namespace msfrs::share
