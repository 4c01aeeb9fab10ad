/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "acl/Gadgets.h"
#include "acl/Tree.h"
#include "base/PackableStream.h"
#include "ConfigOption.h"
#include "ConfigParser.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "Store.h"

#include <sys/un.h>

#include <memory>

namespace
{

using Msfrs::Spec;

const char *const ClassNameRule = "1 to 32 letters, digits, '-', '_' or '.'";

/// the only parameter of a directive, or what there is in its place
std::string
Word(const Msfrs::Place &place, const char *allowed)
{
    const auto token = ConfigParser::NextToken();
    if (!token)
        place.refuse(std::string("the value is missing; give ") + allowed);
    return token;
}

void
RefuseMore(const Msfrs::Place &place)
{
    if (const auto more = ConfigParser::PeekAtToken())
        place.refuse(std::string(more) + " is too much; nothing may follow here");
}

std::string
ClassName(const Msfrs::Place &place)
{
    const auto token = ConfigParser::NextToken();
    if (!token)
        place.refuse(std::string("the name of a class is missing; give ") + ClassNameRule);
    const std::string name(token);
    for (const auto c: name) {
        if (!xisalnum(c) && c != '-' && c != '_' && c != '.')
            place.refuse("class name " + name + " is not allowed; give " + ClassNameRule);
    }
    if (name.size() > 32)
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

} // namespace

Msfrs::Switch::Switch(ConfigParser &)
{
    const auto word = Word(place, "on or off");
    if (word != "on" && word != "off")
        place.refuse(word + " is not allowed; give on or off");
    on = word == "on";
    RefuseMore(place);
}

void
Msfrs::Switch::print(std::ostream &os) const
{
    os << (on ? "on" : "off");
}

Msfrs::Link::Link(ConfigParser &parser):
    options(parser, place, {
    {"rate", Spec::Rate, 8e3, 400e9, "20Mbit"},
    {"interface", Spec::Interface, 0, 0, "eth1"},
    {"overhead", Spec::Percent, 0, 1, "6%"},
    {"packet_overhead", Spec::Count, 0, 256, "14"},
    {"rtt", Spec::Time, 1e6, 10e9, "300ms"}
})
{
    options.require("rate");
}

Msfrs::Window::Window(ConfigParser &parser):
    options(parser, place, {
    {"target", Spec::Percent, 0.01, 0.999, "99%"},
    {"interval", Spec::Time, 100e6, 60e9, "1s"},
    {"growth", Spec::Real, 1.01, 16, "2"},
    {"reserve", Spec::Percent, 0, 10, "50%"},
    {"patience", Spec::Time, 100e6, 3600e9, "600ms"},
    {"floor", Spec::Percent, 0, 0.9, "60%"}
})
{
}

Msfrs::Quantum::Quantum(ConfigParser &)
{
    const Spec spec = {"", Spec::Size, 4096, 1073741824, "16 KB"};
    const std::string none = "none or ";
    written_ = Word(place, (none + Allowed(spec)).c_str());
    if (const auto unit = ConfigParser::NextToken())
        written_ += std::string(" ") + unit;
    RefuseMore(place);
    if (written_ != "none")
        bytes = static_cast<int64_t>(Number(spec, written_, written_, place, none));
}

void
Msfrs::Quantum::print(std::ostream &os) const
{
    os << written_;
}

Msfrs::ClassLine::ClassLine(ConfigParser &parser):
    name(ClassName(place)),
    options(parser, place, {{"weight", Spec::Real, 0.001, 10000, "4"}}, "default")
{
    options.require("weight");
}

double
Msfrs::ClassLine::weight() const
{
    return options.number("weight", 1);
}

bool
Msfrs::ClassLine::isDefault() const
{
    return options.has("default");
}

void
Msfrs::ClassLine::print(std::ostream &os) const
{
    os << name << ' ';
    options.print(os);
}

Msfrs::AccessLine::AccessLine(ConfigParser &parser):
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

Msfrs::AccessLine::~AccessLine()
{
    aclDestroyAclList(&acls);
}

bool
Msfrs::AccessLine::matchesAll() const
{
    static const SBuf all("all");
    // the dump ends with a line feed
    const auto names = TreeOf(acls).treeDump("", &Acl::AllowOrDeny);
    size_t others = 0;
    for (const auto &name: names)
        others += !name.isEmpty() && name != all && name.cmp("\n") != 0;
    return !others;
}

void
Msfrs::AccessLine::print(std::ostream &os) const
{
    os << className << ' ' << (allow ? "allow" : "deny");
    for (const auto &acl: TreeOf(acls).treeDump("", &Acl::AllowOrDeny)) {
        if (!acl.isEmpty() && acl.cmp("\n") != 0)
            os << ' ' << acl;
    }
}

Msfrs::UserKey::UserKey(ConfigParser &)
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
#if USE_SQUID_EUI
        kind = Mac;
        return;
#else
        place.refuse("mac is not possible because this Squid was built with --disable-eui; give src or login");
#endif
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
Msfrs::UserKey::print(std::ostream &os) const
{
    os << written_;
}

Msfrs::Queue::Queue(ConfigParser &parser):
    options(parser, place, {
    {"max_wait", Spec::Time, 100e6, 3600e9, "60s"},
    {"max_per_user", Spec::Count, 1, 1e6, "256"},
    {"max_queued", Spec::Count, 1, 1e7, "65536"}
})
{
}

Msfrs::PluginLine::PluginLine(ConfigParser &parser):
    name(Word(place, "the name of a plugin, or the path of its file"))
{
    Option setting;
    while (NextOption(parser, place, setting)) {
        if (setting.second.empty())
            place.refuse(setting.first + " is not of the form parameter=value");
        settings.push_back(setting);
    }
    if (name == "none" && !settings.empty())
        place.refuse(settings.front().first + "= is too much; none takes no parameters");
}

void
Msfrs::PluginLine::print(std::ostream &os) const
{
    os << name;
    for (const auto &[key, value]: settings)
        os << ' ' << key << '=' << value;
}

Msfrs::ExcessSocket::ExcessSocket(ConfigParser &):
    path(Word(place, "the path of a socket"))
{
    const auto longest = sizeof(sockaddr_un::sun_path) - 1;
    if (path[0] != '/' || path.back() == '/' || path.size() > longest)
        place.refuse(path + " is not allowed; give an absolute path of at most " + std::to_string(longest) +
                     " characters, as in /run/msfrs/excess.sock");
    RefuseMore(place);
}

void
Msfrs::ExcessSocket::print(std::ostream &os) const
{
    os << path;
}

/* directives that may be given once */

namespace Configuration
{

#define MSFRS_COMPONENT(Type) \
    template <> Msfrs::Type * Component<Msfrs::Type*>::Parse(ConfigParser &parser) \
    { return new Msfrs::Type(parser); } \
    template <> void Component<Msfrs::Type*>::Print(std::ostream &os, Msfrs::Type * const &directive) \
    { directive->print(os); } \
    template <> void Component<Msfrs::Type*>::Free(Msfrs::Type * const directive) \
    { delete directive; }

MSFRS_COMPONENT(Switch)
MSFRS_COMPONENT(Link)
MSFRS_COMPONENT(Window)
MSFRS_COMPONENT(Quantum)
MSFRS_COMPONENT(UserKey)
MSFRS_COMPONENT(Queue)
MSFRS_COMPONENT(PluginLine)
MSFRS_COMPONENT(ExcessSocket)

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
parse_msfrs_class(Msfrs::ClassLines ** const lines)
{
    ParseLine(lines);
}

void
dump_msfrs_class(StoreEntry * const entry, const char * const name, const Msfrs::ClassLines * const lines)
{
    DumpLines(entry, name, lines);
}

void
free_msfrs_class(Msfrs::ClassLines ** const lines)
{
    FreeLines(lines);
}

void
parse_msfrs_access(Msfrs::AccessLines ** const lines)
{
    ParseLine(lines);
}

void
dump_msfrs_access(StoreEntry * const entry, const char * const name, const Msfrs::AccessLines * const lines)
{
    DumpLines(entry, name, lines);
}

void
free_msfrs_access(Msfrs::AccessLines ** const lines)
{
    FreeLines(lines);
}

