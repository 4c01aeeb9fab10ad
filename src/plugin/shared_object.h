// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A shared object that stays as it was when it was loaded, whatever becomes of its file.
///
/// The dynamic linker maps a file: who writes over it (cp, rsync --inplace) changes the code of every process that
/// has loaded it, and who shortens it ends them with SIGBUS. So what is loaded is a copy in memory (memfd_create(2)),
/// sealed against changes. It needs no directory to write to, and no mount that allows execution. It costs the size of
/// the file in memory and a descriptor, for each object and process. /proc/PID/maps calls it
/// "/memfd:msfrs:PATH (deleted)"; debuggers and sanitizers find its symbols by the name that the dynamic linker has
/// for it, /proc/PID/fd/N.
///
/// Where the system does not let such a copy be made or run (no /proc, a filter of system calls, SELinux), or what the
/// object needs is looked for beside it ($ORIGIN), the file itself is loaded. It must then be replaced by renaming
/// another over it, as install(1) and package managers do: a process keeps the file that it has mapped.
#ifndef MSFRS_PLUGIN_SHARED_OBJECT_H
#define MSFRS_PLUGIN_SHARED_OBJECT_H

#include <string>

namespace msfrs {

class SharedObject {
public:
    /// \throws std::runtime_error what the dynamic linker says
    explicit SharedObject(const std::string &path);
    ~SharedObject();
    SharedObject(const SharedObject &) = delete;
    SharedObject &operator=(const SharedObject &) = delete;

    /// Null if it exports no such symbol.
    const void *symbol(const char *name) const;

private:
    int copy_ = -1;      ///< the copy; -1: the file itself is loaded
    std::string loaded_; ///< by this name the dynamic linker knows it
    void *handle_ = nullptr;
};

} // namespace msfrs

#endif
