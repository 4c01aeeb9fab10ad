/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "acl/Gadgets.h"
#include "acl/Tree.h"
#include "base/PackableStream.h"
#include "ConfigOption.h"
#include "ConfigParser.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/lib/quota/quotas.h"
#include "Store.h"

#include <climits>
#include <sys/un.h>

#include <algorithm>
#include <memory>

namespace msfrs::squid
{

namespace
{

/// the next word of a directive, which must not be missing
std::string
Word(const Place &place, const char *allowed)
{
    const auto token = ConfigParser::NextToken();
    if (!token)
        place.refuse(std::string("the value is missing; give ") + allowed);
    return token;
}

void
RefuseMore(const Place &place)
{
    if (const auto more = ConfigParser::PeekAtToken())
        place.refuse(std::string(more) + ": unexpected; nothing may follow here");
}

std::string
ClassName(const Place &place)
{
    const auto token = ConfigParser::NextToken();
    if (!token)
        place.refuse(std::string("the name of a class is missing; give ") + ClassNameRule);
    const std::string name(token);
    if (!ValidClassName(name))
        place.refuse("class name " + name + " is not allowed; give " + ClassNameRule);
    return name;
}

const Acl::Tree &
TreeOf(const ACLList * const list)
{
#if __has_include("acl/Node.h") // Squid 7 keeps lists behind a reference-counting pointer
    return Acl::ToTree(list);
#else
    return *list;
#endif
}

/// the names in a list, with a "!" before those that must not match
std::vector<SBuf>
NamesIn(const ACLList * const list)
{
    std::vector<SBuf> names;
    for (const auto &name: TreeOf(list).treeDump("", &Acl::AllowOrDeny)) {
        if (!name.isEmpty() && name.cmp("\n") != 0) // the dump ends with a line feed
            names.push_back(name);
    }
    return names;
}

} // namespace

Switch::Switch(ConfigParser &)
{
    const auto word = Word(place, "on or off");
    if (word != "on" && word != "off")
        place.refuse(word + " is not allowed; give on or off");
    on = word == "on";
    RefuseMore(place);
}

void
Switch::print(std::ostream &os) const
{
    os << (on ? "on" : "off");
}

Quantum::Quantum(ConfigParser &)
{
    const auto &spec = Table::Quantum::Value;
    written_ = Word(place, spec.allowed);
    if (const auto unit = ConfigParser::NextToken())
        written_ += std::string(" ") + unit;
    RefuseMore(place);
    bytes = static_cast<int64_t>(Number(spec, written_, place));
}

void
Quantum::print(std::ostream &os) const
{
    os << written_;
}

ClassLine::ClassLine(ConfigParser &parser):
    name(ClassName(place)),
    options(parser, place, Table::Class::All)
{
}

void
ClassLine::print(std::ostream &os) const
{
    os << name << ' ';
    options.print(os);
}

QuotaClass
ClassLine::quota() const
{
    QuotaClass limit;
    limit.name = name;
    limit.over = options.text(Table::Class::Over);
    if (options.has(Table::Class::Quota)) {
        const auto written = options.text(Table::Class::Quota); // Options has checked it
        limit.bytes = static_cast<int64_t>(options.number(Table::Class::Quota));
        limit.period = *QuotaPeriodOf(std::string_view(written).substr(written.find('/') + 1));
    }
    return limit;
}

AccessLine::AccessLine(ConfigParser &parser):
    className(ClassName(place))
{
    const auto action = Word(place, "allow or deny");
    if (action != "allow" && action != "deny")
        place.refuse(action + " is not allowed; give allow or deny");
    allow = action == "allow";
    if (aclParseAclList(parser, &acls, className.c_str()) <= 0) {
        aclDestroyAclList(&acls);
        place.refuse("the ACLs are missing; give one or more that are defined above, or all");
    }
}

AccessLine::~AccessLine()
{
    aclDestroyAclList(&acls);
}

bool
AccessLine::needsRequest() const
{
    return TreeOf(acls).requiresTransaction();
}

bool
AccessLine::matchesAll() const
{
    static const SBuf all("all");
    const auto names = NamesIn(acls);
    return std::all_of(names.begin(), names.end(), [](const SBuf &name) { return name == all; });
}

void
AccessLine::print(std::ostream &os) const
{
    os << className << ' ' << (allow ? "allow" : "deny");
    for (const auto &name: NamesIn(acls))
        os << ' ' << name;
}

UserKey::UserKey(ConfigParser &)
{
    const auto allowed = "src, src6/NN with NN from 1 to 128 (as in src6/64), login or mac";
    written_ = Word(place, allowed);
    RefuseMore(place);
    if (written_ == "src")
        return;
    if (written_ == "login") {
#if USE_AUTH
        kind = Login;
        return;
#else
        place.refuse("login is not possible because this Squid was built with --disable-auth; give src or mac");
#endif
    }
    if (written_ == "mac") {
        kind = Mac;
        prefix6 = 128; // clients of unknown hardware address are most likely on one Ethernet, with one network
        return;
    }
    const std::string network = "src6/";
    if (written_.compare(0, network.size(), network) == 0) {
        const auto digits = written_.substr(network.size());
        const auto plain = !digits.empty() && digits.size() <= 3 &&
                           digits.find_first_not_of("0123456789") == std::string::npos;
        const auto bits = plain ? std::stoi(digits) : 0;
        if (bits >= 1 && bits <= 128) {
            prefix6 = bits;
            return;
        }
    }
    place.refuse(written_ + " is not allowed; give " + allowed);
}

void
UserKey::print(std::ostream &os) const
{
    os << written_;
}

PluginLine::PluginLine(ConfigParser &parser):
    name(Word(place, "the name of a plugin, or the path of its file"))
{
    Option setting;
    while (NextOption(parser, place, setting)) {
        if (setting.second.empty())
            place.refuse(setting.first + " is not of the form parameter=value");
        settings.push_back(setting);
    }
    if (name == "none" && !settings.empty())
        place.refuse(settings.front().first + "=: unexpected; none takes no parameters");
}

void
PluginLine::print(std::ostream &os) const
{
    os << name;
    for (const auto &[key, value]: settings)
        os << ' ' << key << '=' << value;
}

PathLine::PathLine(const char * const what, const size_t longest, const char * const example):
    path(Word(place, what))
{
    if (path[0] != '/' || path.back() == '/' || path.size() > longest)
        place.refuse(path + " is not allowed; give an absolute path of at most " + std::to_string(longest) +
                     " characters, as in " + example);
    RefuseMore(place);
}

ExcessSocket::ExcessSocket(ConfigParser &):
    PathLine("the path of a socket", sizeof(sockaddr_un::sun_path) - 1, "/run/msfrs/excess.sock")
{
}

QuotaFile::QuotaFile(ConfigParser &):
    PathLine("the path of a file", PATH_MAX - sizeof(".refused"), "/var/spool/squid/msfrs-quota")
{
}

} // namespace msfrs::squid

/* directives that may be given once */

namespace Configuration
{

#define MSFRS_COMPONENT(Type) \
    template <> msfrs::squid::Type * Component<msfrs::squid::Type*>::Parse(ConfigParser &parser) \
    { return new msfrs::squid::Type(parser); } \
    template <> void Component<msfrs::squid::Type*>::Print(std::ostream &os, msfrs::squid::Type * const &directive) \
    { directive->print(os); } \
    template <> void Component<msfrs::squid::Type*>::Free(msfrs::squid::Type * const directive) \
    { delete directive; }

MSFRS_COMPONENT(Switch)
MSFRS_COMPONENT(Window)
MSFRS_COMPONENT(Quantum)
MSFRS_COMPONENT(UserKey)
MSFRS_COMPONENT(Queue)
MSFRS_COMPONENT(PluginLine)
MSFRS_COMPONENT(ExcessSocket)
MSFRS_COMPONENT(QuotaFile)

#undef MSFRS_COMPONENT

} // namespace Configuration

/* directives that may be repeated */

namespace
{

template <class Line>
void
ParseLine(std::vector<Line *> **lines)
{
    ConfigParser parser; // has no state of its own
    std::unique_ptr<Line> line(new Line(parser));
    if (!*lines)
        *lines = new std::vector<Line *>;
    (*lines)->push_back(line.release());
}

template <class Line>
void
DumpLines(StoreEntry * const entry, const char * const name, const std::vector<Line *> * const lines)
{
    if (!lines)
        return;
    PackableStream os(*entry);
    for (const auto line: *lines) {
        os << name << ' ';
        line->print(os);
        os << '\n';
    }
}

template <class Line>
void
FreeLines(std::vector<Line *> ** const lines)
{
    if (!*lines)
        return;
    for (const auto line: **lines)
        delete line;
    delete *lines;
    *lines = nullptr;
}

} // namespace

void
parse_msfrs_link(msfrs::squid::Links ** const lines)
{
    ParseLine(lines);
}

void
dump_msfrs_link(StoreEntry * const entry, const char * const name, const msfrs::squid::Links * const lines)
{
    DumpLines(entry, name, lines);
}

void
free_msfrs_link(msfrs::squid::Links ** const lines)
{
    FreeLines(lines);
}

void
parse_msfrs_class(msfrs::squid::ClassLines ** const lines)
{
    ParseLine(lines);
}

void
dump_msfrs_class(StoreEntry * const entry, const char * const name, const msfrs::squid::ClassLines * const lines)
{
    DumpLines(entry, name, lines);
}

void
free_msfrs_class(msfrs::squid::ClassLines ** const lines)
{
    FreeLines(lines);
}

void
parse_msfrs_access(msfrs::squid::AccessLines ** const lines)
{
    ParseLine(lines);
}

void
dump_msfrs_access(StoreEntry * const entry, const char * const name, const msfrs::squid::AccessLines * const lines)
{
    DumpLines(entry, name, lines);
}

void
free_msfrs_access(msfrs::squid::AccessLines ** const lines)
{
    FreeLines(lines);
}
