// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/machine.h"

#include "daemon/descriptor.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

namespace msfrs {

namespace {

/// "/run/msfrs-edge" of "/run/msfrs-edge/control.socket"; "" for a path right below the root.
std::string Above(const std::string &path) { return path.substr(0, path.rfind('/')); }

enum class Found { Nothing, Directory, Socket, Other };

Found Look(const std::string &path)
{
    struct stat found{};
    if ((path.empty() ? stat("/", &found) : stat(path.c_str(), &found)) < 0)
        return Found::Nothing;
    return S_ISDIR(found.st_mode) ? Found::Directory : S_ISSOCK(found.st_mode) ? Found::Socket : Found::Other;
}

[[noreturn]] void Refuse(const Written &control, const std::string &what)
{
    throw RuleError(control.where + ": control " + control.value + ": " + what);
}

} // namespace

void CheckUser(const Written &user)
{
    const auto refuse = [&](const char *const what) {
        throw RuleError((user.where.empty() ? "" : user.where + ": ") + "user " + user.value + ": " + what);
    };
    const auto *const entry = getpwnam(user.value.c_str());
    if (!entry)
        refuse("unknown on this machine; create it with useradd --system, or name another");
    if (entry && entry->pw_uid == 0)
        refuse("must not be root");
}

void CheckControl(const Written &control)
{
    if (control.value.empty())
        return;
    const auto there = Look(control.value);
    if (there == Found::Directory)
        Refuse(control, "it is a directory; expected the path of a socket in one");
    if (there == Found::Other)
        Refuse(control, "exists and is not a socket");
    const auto above = Above(control.value);
    const auto directory = Look(above);
    if (directory != Found::Nothing && directory != Found::Directory)
        Refuse(control, above + " is no directory");
    if (directory == Found::Nothing && Look(Above(above)) != Found::Directory)
        Refuse(control, "there is no directory " + Above(above) + ", and a start creates only " + above);
}

void MakeControlDirectory(const Written &control, const std::string &user)
{
    const auto above = Above(control.value);
    if (control.value.empty() || Look(above) != Found::Nothing)
        return;
    if (mkdir(above.c_str(), 0755) < 0)
        Refuse(control, "directory " + above + " cannot be created: " + std::strerror(errno));
    const auto *const entry = geteuid() == 0 ? getpwnam(user.c_str()) : nullptr;
    const Descriptor made(open(above.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (entry && (made.get() < 0 || fchown(made.get(), entry->pw_uid, entry->pw_gid) < 0))
        Refuse(control, "directory " + above + " cannot be given to user " + user + ": " + std::strerror(errno));
}

std::string WhyControlStays(const Written &control, const std::string &user)
{
    if (control.value.empty())
        return {};
    const auto above = Above(control.value);
    struct stat directory{}, socket{};
    const bool writable = faccessat(AT_FDCWD, (above + "/").c_str(), W_OK | X_OK, AT_EACCESS) == 0;
    // In a directory like /tmp only the owner of a file may remove it.
    const bool sticky = stat((above + "/").c_str(), &directory) == 0 && (directory.st_mode & S_ISVTX) &&
        directory.st_uid != geteuid() && lstat(control.value.c_str(), &socket) == 0 && socket.st_uid != geteuid();
    if (writable && !sticky)
        return {};
    return "control " + control.value + ": the socket will stay there at the end, since user " + user +
        " may not remove it from " + (above.empty() ? "/" : above) +
        "; a directory that does not exist yet is made for that user";
}

void CheckReadable(const std::string &path, const std::string &user)
{
    if (faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) < 0)
        throw RuleError(path + ": user " + user + ", who reads it at a reload, cannot: " + std::strerror(errno));
}

} // namespace msfrs
