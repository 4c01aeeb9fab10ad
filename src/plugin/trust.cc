// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/trust.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <grp.h>
#include <link.h>
#include <pwd.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs {

namespace {

std::string Resolved(const std::string &path)
{
    char found[PATH_MAX];
    if (!realpath(path.c_str(), found))
        throw std::runtime_error(path + ": " + std::strerror(errno));
    return found;
}

/// Calls visit(name, status) for "/" and each further component of a path without symbolic links. From the top: nobody
/// can replace anything in a directory that was found to be trusted.
template <class Visit>
void EachOnTheWay(const std::string &path, Visit visit)
{
    for (size_t end = 1;; end = path.find('/', end + 1)) {
        const auto name = path.substr(0, end);
        struct stat status;
        if (lstat(name.c_str(), &status) != 0)
            throw std::runtime_error(name + ": " + std::strerror(errno));
        if (S_ISLNK(status.st_mode))
            throw std::runtime_error(name + ": has become a symbolic link just now");
        visit(name, status);
        if (end == path.npos)
            return;
    }
}

/// Whether these may replace the entry: in a sticky directory only owners may.
bool Open(const struct stat &status, const mode_t writers)
{
    return (status.st_mode & writers) && !(S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX));
}

std::string UserName(const uid_t uid)
{
    const passwd *const entry = getpwuid(uid);
    return "user " + (entry ? std::string(entry->pw_name) : std::to_string(uid));
}

std::string GroupName(const gid_t gid)
{
    const group *const entry = getgrgid(gid);
    return "group " + (entry ? std::string(entry->gr_name) : std::to_string(gid));
}

/// The file that contains this code: the program or a shared library.
std::string OwnFile()
{
    Dl_info info;
    void *map = nullptr;
    const bool found = dladdr1(reinterpret_cast<const void *>(&OwnFile), &info, &map, RTLD_DL_LINKMAP);
    const char *const name = found && map ? static_cast<const link_map *>(map)->l_name : "";
    return *name ? name : "/proc/self/exe"; // the program has no name there
}

bool MayBecomeRoot()
{
    uid_t real = 0, effective = 0, saved = 0;
    getresuid(&real, &effective, &saved);
    return !real || !effective || !saved;
}

} // namespace

Writers WritersOf(const std::string &path)
{
    Writers found;
    EachOnTheWay(Resolved(path), [&](const std::string &, const struct stat &status) {
        found.users.insert(status.st_uid);
        if (Open(status, S_IWGRP))
            found.groups.insert(status.st_gid);
    });
    return found;
}

std::string TrustedPath(const std::string &path, const Writers &trusted)
{
    const auto resolved = Resolved(path);
    EachOnTheWay(resolved, [&](const std::string &name, const struct stat &status) {
        const auto refuse = [&](const std::string &who, const std::string &remedy) {
            throw std::runtime_error(name + " can be changed by " + who + ", and a process that may become root takes "
                                     "code from root alone: " + remedy + " " + name +
                                     ", or load it from where only root may write");
        };
        if (!trusted.users.count(status.st_uid))
            refuse(UserName(status.st_uid), "chown root");
        if (Open(status, S_IWGRP) && !trusted.groups.count(status.st_gid))
            refuse(GroupName(status.st_gid), "chmod g-w");
        if (Open(status, S_IWOTH))
            refuse("everybody", "chmod o-w");
    });
    return resolved;
}

std::string TrustedPath(const std::string &path)
{
    if (!MayBecomeRoot())
        return path;
    Writers trusted{{0}, {0}};
    try {
        const auto own = WritersOf(OwnFile());
        trusted.users.insert(own.users.begin(), own.users.end());
        trusted.groups.insert(own.groups.begin(), own.groups.end());
    } catch (const std::runtime_error &) { // replaced since it was started: then only root
    }
    return TrustedPath(path, trusted);
}

} // namespace msfrs
