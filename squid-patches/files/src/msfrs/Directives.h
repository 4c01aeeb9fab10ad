/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_DIRECTIVES_H
#define SQUID_SRC_MSFRS_DIRECTIVES_H

#include "acl/forward.h"
#include "msfrs/DirectiveTable.h"
#include "msfrs/Options.h"

#include <cstdint>
#include <memory>
#include <type_traits>

namespace msfrs
{
class Plugin;
struct QuotaClass;
}

namespace msfrs::squid
{

/// One line of squid.conf. Constructors parse it, check all that does not depend on other lines, and throw ConfigError.
/// print() writes what followed the directive's name, as in squid.conf.
class Directive
{
public:
    virtual ~Directive() = default;
    Directive() = default;
    Directive(const Directive &) = delete;
    Directive &operator =(const Directive &) = delete;

    virtual void print(std::ostream &) const = 0;

    const Place place;

    /// The plugin that this line selects, loaded by Configuration::check(). Nil: none; or it failed to load at a
    /// reconfiguration, and the running one stays.
    std::shared_ptr<const Plugin> plugin;
};

/// Refuses a second line of a directive that may be given once. Does nothing for directives that are not ours.
template <class T>
inline void
RefuseSecond(const T &) {}

/// \throws ConfigError with file and line of the first
template <class D>
inline std::enable_if_t<std::is_convertible<D *, const Directive *>::value>
RefuseSecond(D * const &first)
{
    const Directive &directive = *first;
    Place().refuse("given once already, at " + directive.place.where());
}

/// msfrs on|off
class Switch: public Directive
{
public:
    explicit Switch(ConfigParser &);
    void print(std::ostream &) const override;

    bool on = false;
};

/// A directive that consists of options.
class OptionsLine: public Directive
{
public:
    void print(std::ostream &os) const override { options.print(os); }

    const Options options;

protected:
    OptionsLine(ConfigParser &parser, const Spec *const *known): options(parser, place, known) {}
};

/// msfrs_link
class Link: public OptionsLine
{
public:
    explicit Link(ConfigParser &parser): OptionsLine(parser, Table::Link::All) {}
    bool isAuto() const { return options.text(Table::Link::Rate) == Table::Link::Rate.instead; }
};

/// msfrs_window
class Window: public OptionsLine
{
public:
    explicit Window(ConfigParser &parser): OptionsLine(parser, Table::Window::All) {}
};

/// msfrs_queue
class Queue: public OptionsLine
{
public:
    explicit Queue(ConfigParser &parser): OptionsLine(parser, Table::Queue::All) {}
};

/// msfrs_quantum SIZE|none
class Quantum: public Directive
{
public:
    explicit Quantum(ConfigParser &);
    void print(std::ostream &) const override;

    int64_t bytes = 0; ///< 0: none

private:
    std::string written_;
};

/// msfrs_class NAME weight= [default] [quota= over=]
class ClassLine: public Directive
{
public:
    explicit ClassLine(ConfigParser &);
    void print(std::ostream &) const override;

    double weight() const { return options.number(Table::Class::Weight); }
    bool isDefault() const { return options.has(Table::Class::Default); }
    QuotaClass quota() const; ///< name and quota, if it has one

    std::string name;
    Options options;
};

/// msfrs_access NAME allow|deny ACL...
class AccessLine: public Directive
{
public:
    explicit AccessLine(ConfigParser &);
    ~AccessLine() override;
    void print(std::ostream &) const override;

    bool matchesAll() const; ///< whether the list is just the ACL "all"

    /// whether an ACL of the list, or one in a group of ACLs, cannot be evaluated without a request
    bool needsRequest() const;

    std::string className;
    uint32_t cls = 0; ///< index of that class; set by Configuration::check()
    bool allow = false;
    ACLList *acls = nullptr;
};

/// msfrs_user src|src6/NN|login|mac
class UserKey: public Directive
{
public:
    enum Kind { Source, Login, Mac };

    explicit UserKey(ConfigParser &);
    void print(std::ostream &) const override;

    /// Leading bits of an IPv6 address that identify a user, unless src6/NN is given. An IPv6 link has 64 (RFC 4291),
    /// and a machine may use any number of addresses on it (RFC 8981): with more bits, each would get a user's share.
    static constexpr unsigned NetworkBits = 64;

    Kind kind = Source;
    unsigned prefix6 = NetworkBits; ///< 1..128

private:
    std::string written_;
};

/// msfrs_arbiter NAME [parameter=value...], msfrs_admission none|NAME [parameter=value...]
class PluginLine: public Directive
{
public:
    explicit PluginLine(ConfigParser &);
    void print(std::ostream &) const override;

    std::string name;
    std::vector<Option> settings; ///< checked by Configuration::check() against the plugin's own table
};

/// A directive whose only value is the path of a file.
class PathLine: public Directive
{
public:
    void print(std::ostream &os) const override { os << path; }

    const std::string path; ///< absolute

protected:
    /// \param what the path names, as messages call it
    PathLine(const char *what, size_t longest, const char *example);
};

/// msfrs_excess PATH
class ExcessSocket: public PathLine
{
public:
    explicit ExcessSocket(ConfigParser &);
};

/// msfrs_quota_file PATH
class QuotaFile: public PathLine
{
public:
    explicit QuotaFile(ConfigParser &);
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_DIRECTIVES_H */

