// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Whose code a process with root privileges may run.
///
/// Giving up root temporarily does not help: code loaded in that time stays, and may take the privileges back later.
/// A process that may become root loads a file only if everybody who can change or replace it could have changed the
/// program itself as well. If the program is root's alone, so must be the file and every directory above it; if you run
/// as root a program built in your home, it may also load what you built there.
///
/// Shared libraries that the file needs are not checked: the dynamic linker finds those.
#pragma once

#include <set>
#include <string>
#include <sys/types.h>

namespace msfrs {

/// Who may change or replace a file, by owners and modes (access control lists count in the mode of the group).
struct Writers {
    std::set<uid_t> users;
    std::set<gid_t> groups;
};

/// Who may write to a file or to a directory above it. Everybody is in no set: trusting these does not trust all.
/// \throws std::runtime_error: the path leads to nothing that can be examined
Writers WritersOf(const std::string &path);

/// The path without symbolic links, if nobody else may change its target.
/// \throws std::runtime_error: somebody may (who, what, and what to do), or there is no target
std::string TrustedPath(const std::string &path, const Writers &trusted);

/// The same for this process: if it is or may become root, root and the writers of the program are trusted; otherwise
/// nothing is checked.
std::string TrustedPath(const std::string &path);

} // namespace msfrs
