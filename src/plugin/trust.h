// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Whose code a process with the rights of root may run.
///
/// Giving up root for a while does not help: code that is loaded then is still there, and may take the rights back,
/// when they are needed again (Squid opens ports and reads squid.conf with them). So it counts who could have written
/// the code: a process that may become root loads a file only if nobody can change it, or put another in its place,
/// who could not have changed the program itself as well. Where the program is root's alone, so must be the file and
/// every directory above it; who runs as root what he has built in his home may also load what he has built there.
///
/// Not looked at are shared libraries that the file needs: the dynamic linker finds those.
#ifndef MSFRS_PLUGIN_TRUST_H
#define MSFRS_PLUGIN_TRUST_H

#include <set>
#include <string>
#include <sys/types.h>

namespace msfrs {

/// Who may change a file, or put another in its place, by owners and modes (access control lists count in the mode of
/// the group).
struct Writers {
    std::set<uid_t> users;
    std::set<gid_t> groups;
};

/// Who may write to a file or to a directory above it. Everybody is in no set: who trusts these does not trust all.
/// \throws std::runtime_error: the path leads to nothing that can be looked at
Writers WritersOf(const std::string &path);

/// The path without symbolic links, if nobody else may change what it leads to.
/// \throws std::runtime_error: somebody may (who, what, and what to do), or it leads to nothing
std::string TrustedPath(const std::string &path, const Writers &trusted);

/// The same for who asks: root and the writers of the program are trusted if this process is root or may become so,
/// and otherwise there is nothing to ask.
std::string TrustedPath(const std::string &path);

} // namespace msfrs

#endif
