/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_CONFIG_H
#define SQUID_SRC_MSFRS_CONFIG_H

#include <cstdint>
#include <string>
#include <vector>

class StoreEntry;

namespace msfrs
{
struct QuotaClass;
struct RequestConfig;
}

namespace msfrs::squid
{

class Switch;
class Link;
class Window;
class Quantum;
class ClassLine;
class AccessLine;
class UserKey;
class Queue;
class PluginLine;
class ExcessSocket;
class QuotaFile;

using Links = std::vector<Link *>;
using ClassLines = std::vector<ClassLine *>;
using AccessLines = std::vector<AccessLine *>;

/// The msfrs_* directives. Plain pointers, like everything in SquidConfig: the code generated from
/// cf.data.pre sets and frees them; nil means that squid.conf does not have the directive.
class Configuration
{
public:
    bool on() const; ///< msfrs on

    /// Checks what can only be checked after the whole file was read, including that the plugins load and accept
    /// their parameters; warns about harmless mistakes.
    /// \throws ConfigError whose text begins with file, line and directive
    void check();

    /// The configuration for the scheduler of a link.
    /// \param running the present one, if there is one: its plugins stay where check() could not load others
    RequestConfig requestConfig(const Link &, const RequestConfig *running = nullptr) const;

    /// The quotas of the classes; as many as classes, in the same order.
    std::vector<QuotaClass> quotaClasses() const;

    std::string quotaPath() const; ///< of msfrs_quota_file; empty: there is none

    Switch *toggle = nullptr;
    Links *links = nullptr; ///< not empty
    Window *window = nullptr;
    Quantum *quantum = nullptr;
    ClassLines *classes = nullptr;
    AccessLines *access = nullptr;
    UserKey *user = nullptr;
    Queue *queue = nullptr;
    PluginLine *arbiter = nullptr;
    PluginLine *admission = nullptr;
    ExcessSocket *excess = nullptr;
    QuotaFile *quotaFile = nullptr;

private:
    void checkClasses() const;
    void checkAccess();
    void checkPresence() const;
    void checkLinks() const;
    void checkPlugins() const;
    void checkQuotas() const;
};

} // namespace msfrs::squid

/* what the code generated from cf.data.pre calls for the directives that may be repeated */
void parse_msfrs_link(msfrs::squid::Links **);
void dump_msfrs_link(StoreEntry *, const char *name, const msfrs::squid::Links *);
void free_msfrs_link(msfrs::squid::Links **);
void parse_msfrs_class(msfrs::squid::ClassLines **);
void dump_msfrs_class(StoreEntry *, const char *name, const msfrs::squid::ClassLines *);
void free_msfrs_class(msfrs::squid::ClassLines **);
void parse_msfrs_access(msfrs::squid::AccessLines **);
void dump_msfrs_access(StoreEntry *, const char *name, const msfrs::squid::AccessLines *);
void free_msfrs_access(msfrs::squid::AccessLines **);

#endif /* SQUID_SRC_MSFRS_CONFIG_H */

