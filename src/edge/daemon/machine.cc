// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/machine.h"

#include "daemon/descriptor.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

namespace msfrs::edge {

namespace {

/// "/run/msfrs-edge" of "/run/msfrs-edge/control.socket"; "" of what is right below the root.
std::string Above(const std::string &path) { return path.substr(0, path.rfind('/')); }

enum class Found { Nothing, Directory, Socket, Other };

Found Look(const std::string &path)
{
    struct stat found{};
    if ((path.empty() ? stat("/", &found) : stat(path.c_str(), &found)) < 0)
        return Found::Nothing;
    return S_ISDIR(found.st_mode) ? Found::Directory : S_ISSOCK(found.st_mode) ? Found::Socket : Found::Other;
}

[[noreturn]] void RefuseControl(const Config &config, const std::string &what)
{
    throw RuleError(config.controlWhere + ": control " + config.control + ": " + what);
}

} // namespace

void CheckMachine(const Config &config)
{
    const auto refuseUser = [&](const char *const what) {
        throw RuleError((config.userWhere.empty() ? "" : config.userWhere + ": ") + "user " + config.user + ": " + what);
    };
    const auto *const user = getpwnam(config.user.c_str());
    if (!user)
        refuseUser("there is none of that name");
    if (user && user->pw_uid == 0)
        refuseUser("must not be root");
    if (config.control.empty())
        return;
    const auto there = Look(config.control);
    if (there == Found::Directory)
        RefuseControl(config, "it is a directory; wanted is the path of a socket in one");
    if (there == Found::Other)
        RefuseControl(config, "there is something that is no socket");
    const auto above = Above(config.control);
    const auto directory = Look(above);
    if (directory != Found::Nothing && directory != Found::Directory)
        RefuseControl(config, above + " is no directory");
    if (directory == Found::Nothing && Look(Above(above)) != Found::Directory)
        RefuseControl(config, "there is no directory " + Above(above) + ", and a start makes the last one alone, " +
                      above);
}

void MakeControlDirectory(const Config &config)
{
    const auto above = Above(config.control);
    if (config.control.empty() || Look(above) != Found::Nothing)
        return;
    if (mkdir(above.c_str(), 0755) < 0)
        RefuseControl(config, "directory " + above + " cannot be made: " + std::strerror(errno));
    const auto *const user = geteuid() == 0 ? getpwnam(config.user.c_str()) : nullptr;
    const Descriptor made(open(above.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (user && (made.get() < 0 || fchown(made.get(), user->pw_uid, user->pw_gid) < 0))
        RefuseControl(config, "directory " + above + " cannot be given to user " + config.user + ": " +
                      std::strerror(errno));
}

std::string WhyControlStays(const Config &config)
{
    if (config.control.empty())
        return {};
    const auto above = Above(config.control);
    struct stat directory{}, socket{};
    const bool writable = faccessat(AT_FDCWD, (above + "/").c_str(), W_OK | X_OK, AT_EACCESS) == 0;
    // In a directory like /tmp only whoever owns a file may remove it.
    const bool sticky = stat((above + "/").c_str(), &directory) == 0 && (directory.st_mode & S_ISVTX) &&
        directory.st_uid != geteuid() && lstat(config.control.c_str(), &socket) == 0 && socket.st_uid != geteuid();
    if (writable && !sticky)
        return {};
    return "control " + config.control + ": the socket will stay there at the end, since user " + config.user +
        " may not remove it from " + (above.empty() ? "/" : above) +
        "; a directory that does not exist yet is made for that user";
}

std::string CheckReload(const Config &config, const std::string &file, const std::string &pluginDir)
{
    for (const auto &path : {file, config.rulesFile}) {
        if (!path.empty() && faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) < 0)
            throw RuleError(path + ": user " + config.user + ", as whom a reload reads it, cannot: " +
                            std::strerror(errno));
    }
    try {
        ReadConfig(file, pluginDir);
    } catch (const RuleError &error) { // a plugin
        return "every reload will be refused: " + std::string(error.what()) + ", as user " + config.user;
    }
    return {};
}

} // namespace msfrs::edge
