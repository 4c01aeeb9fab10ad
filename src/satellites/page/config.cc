// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/config.h"

#include "satellites/page/http.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <netinet/in.h>
#include <sys/stat.h>

namespace msfrs::page {

namespace {


/// ADDRESS:PORT or [ADDRESS]:PORT
Endpoint ReadEndpoint(Line &line, const char *const keyword)
{
    const auto word = line.need();
    const auto refuse = [&] {
        line.refuse(std::string(keyword) + " " + Shown(word) +
                    ": give ADDRESS:PORT or [ADDRESS]:PORT, of IPv4 or IPv6 and no name, with a port from 1 to 65535, "
                    "as in 127.0.0.1:3880");
    };
    Endpoint made;
    const auto colon = word.rfind(':');
    if (colon == word.npos)
        refuse();
    auto address = word.substr(0, colon);
    made.v6 = address.size() > 2 && address.front() == '[' && address.back() == ']';
    if (made.v6)
        address = address.substr(1, address.size() - 2);
    made.address = address;
    in_addr v4{};
    in6_addr v6{};
    const auto port = WholeNumber(word.substr(colon + 1), 65535);
    const bool known = made.v6 ? inet_pton(AF_INET6, made.address.c_str(), &v6) == 1
                               : inet_pton(AF_INET, made.address.c_str(), &v4) == 1;
    if (!known || !port || *port == 0)
        refuse();
    made.port = static_cast<uint16_t>(*port);
    made.loopback = made.v6 ? IN6_IS_ADDR_LOOPBACK(&v6) : ntohl(v4.s_addr) >> 24 == 127;
    made.any = made.v6 ? IN6_IS_ADDR_UNSPECIFIED(&v6) : v4.s_addr == 0;
    line.end();
    return made;
}

std::string ReadPath(Line &line, const char *const keyword) { return line.path(keyword, 1000).value; }

void ReadNames(Line &line, Config &config, const bool leases)
{
    constexpr size_t Most = 16;
    config.names.push_back({ReadPath(line, leases ? "leases" : "names"), leases});
    if (config.names.size() > Most)
        line.refuse("more than " + std::to_string(Most) + " files with names");
}

void ReadHosts(Line &line, Config &config)
{
    constexpr size_t Most = 32;
    for (auto word = line.need(); !word.empty(); word = line.next()) {
        const auto host = HostOf(word);
        const bool bare = host.size() == word.size();
        if (!bare)
            line.refuse("host " + Shown(word) + ": expected a name or an address, IPv6 in brackets, without port");
        config.hosts.push_back(host);
        if (config.hosts.size() > Most)
            line.refuse("more than " + std::to_string(Most) + " hosts");
    }
}

void ReadPace(Line &line, Config &config)
{
    const auto word = line.need();
    const auto seconds = WholeNumber(word.substr(0, word.size() - 1), 60);
    if (word.back() != 's' || !seconds || *seconds == 0)
        line.refuse("pace " + Shown(word) + ": allowed are whole seconds, 1s to 60s");
    config.pace = *seconds;
    line.end();
}

const Keyword<Config> Keywords[] = {
    {"listen", "listen ADDRESS:PORT", false, [](Line &l, Config &c) { c.listen = ReadEndpoint(l, "listen"); }},
    {"host", "host NAME...", true, ReadHosts},
    {"token", "token FILE", false, [](Line &l, Config &c) { c.tokenFile = ReadPath(l, "token"); }},
    {"users_listen", "users_listen ADDRESS:PORT", false,
     [](Line &l, Config &c) { c.users = ReadEndpoint(l, "users_listen"); }},
    {"names", "names FILE", true, [](Line &l, Config &c) { ReadNames(l, c, false); }},
    {"leases", "leases FILE", true, [](Line &l, Config &c) { ReadNames(l, c, true); }},
    {"squid", "squid ADDRESS:PORT", false, [](Line &l, Config &c) { c.squid = ReadEndpoint(l, "squid"); }},
    {"pace", "pace SECONDS", false, ReadPace},
    {"boost", "boost DIRECTORY", false, [](Line &l, Config &c) { c.boosts = ReadPath(l, "boost"); }},
    {"faults", "faults FILE", false, [](Line &l, Config &c) { c.faults = ReadPath(l, "faults"); }},
    {"history", "history FILE", false, [](Line &l, Config &c) { c.history = ReadPath(l, "history"); }},
    {"chart", "chart FILE", false, [](Line &l, Config &c) { c.chart = ReadPath(l, "chart"); }},
    {"web", "web DIRECTORY", false, [](Line &l, Config &c) { c.web = ReadPath(l, "web"); }},
    {"user", "user NAME", false, [](Line &l, Config &c) { c.user = l.user(); }},
};

} // namespace

Config ReadConfig(std::istream &in, const std::string &file)
{
    Config config;
    config.web = MSFRS_PAGE_WEB;
    ReadKeywords(in, file, Keywords, config);
    if (!config.listen.loopback && config.tokenFile.empty())
        throw RuleError(file + ": listen " + config.listen.text() +
                        ": other machines can reach this address, so the page needs a password; add a line: " +
                        UsageOf(Keywords, "token"));
    if (!config.boosts.empty() && config.tokenFile.empty())
        throw RuleError(file + ": boost " + config.boosts +
                        ": everybody who sees the page could boost, so it needs a password; add a line: " +
                        UsageOf(Keywords, "token"));
    const auto checkNames = [&](const std::string &at, const bool any) {
        if (any && config.hosts.empty())
            throw RuleError(file + ": " + at + ": the page does not know by which of all addresses it is called; add a "
                            "line: " +
                            UsageOf(Keywords, "host"));
    };
    checkNames("listen " + config.listen.text(), config.listen.any);
    if (config.users) {
        const auto at = "users_listen " + config.users->text();
        checkNames(at, config.users->any);
        if (config.users->port == config.listen.port &&
            (config.users->any || config.listen.any || config.users->address == config.listen.address))
            throw RuleError(file + ": " + at + ": the port of listen " + config.listen.text() +
                            ", which shows all users; give another");
    }
    return config;
}

Config ReadConfig(const std::string &path)
{
    auto in = OpenFile(path);
    return ReadConfig(in, path);
}

std::string ReadToken(const std::string &path)
{
    constexpr size_t Least = 16, Most = 256;
    struct stat found{};
    std::ifstream in(path);
    if (!in || stat(path.c_str(), &found) < 0)
        throw RuleError("token " + path + ": cannot be opened: " + std::strerror(errno));
    if (found.st_mode & S_IROTH)
        throw RuleError("token " + path + ": all users of this machine may read it; chmod o= " + path);
    std::string token(Most + 1, 0);
    in.read(token.data(), static_cast<std::streamsize>(token.size()));
    token.resize(static_cast<size_t>(in.gcount()));
    token.resize(std::min(token.find_first_of("\r\n"), token.size()));
    const bool shown = std::all_of(token.begin(), token.end(), [](const char c) { return c > ' ' && c <= '~'; });
    if (token.size() < Least || token.size() > Most || !shown)
        throw RuleError("token " + path + ": expected a line of " + std::to_string(Least) + " to " +
                        std::to_string(Most) + " letters, digits and signs, such as `openssl rand -hex 16` prints");
    return token;
}

} // namespace msfrs::page
