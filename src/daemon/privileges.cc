// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/privileges.h"

#include "daemon/descriptor.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace msfrs {

namespace {

constexpr unsigned Words = _LINUX_CAPABILITY_U32S_3;
constexpr __u32 NetAdmin = __u32{1} << CAP_NET_ADMIN;

struct Capabilities {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[Words]{};
};

} // namespace

bool HasNetAdmin()
{
    Capabilities have;
    return syscall(SYS_capget, &have.header, have.sets) == 0 && (have.sets[0].effective & NetAdmin);
}

void DropPrivileges(const std::string &user, const Keep keep)
{
    if (geteuid() == 0) {
        const passwd *const entry = getpwnam(user.c_str());
        if (!entry)
            throw SystemError("user \"" + user + "\": unknown on this machine; create it with useradd --system, or "
                              "name another");
        if (entry->pw_uid == 0)
            throw SystemError("user \"" + user + "\": must not be root");
        if ((keep != Keep::Nothing && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) || setgroups(0, nullptr) < 0 ||
            setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) < 0 ||
            setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) < 0)
            Fail("cannot become user " + user);
    }
    Capabilities left;
    if (keep == Keep::NetAdmin)
        left.sets[0].effective = left.sets[0].permitted = NetAdmin;
    if (syscall(SYS_capset, &left.header, left.sets) < 0)
        Fail("cannot give up capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        Fail("cannot rule out new privileges");
}

} // namespace msfrs
