// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A shared object that does not change after it was loaded, even if its file does.
///
/// The dynamic linker maps a file. Writing over the file (cp, rsync --inplace) changes the code of every process that
/// has loaded it, and truncating it ends them with SIGBUS. So this class loads a sealed copy in memory
/// (memfd_create(2)). It costs the size of the file in memory and a descriptor, for each object and process.
/// /proc/PID/maps shows it as "/memfd:msfrs:PATH (deleted)"; debuggers find its symbols by /proc/PID/fd/N.
///
/// If the system does not allow such a copy (no /proc, a system call filter, SELinux), or the object needs files beside
/// it ($ORIGIN), the file itself is loaded. Then replace it by renaming a new file over it, as install(1) and package
/// managers do: a process keeps the file that it has mapped.
#pragma once

#include <string>

namespace msfrs {

class SharedObject {
public:
    /// \throws std::runtime_error with the message of the dynamic linker
    explicit SharedObject(const std::string &path);
    ~SharedObject();
    SharedObject(const SharedObject &) = delete;
    SharedObject &operator=(const SharedObject &) = delete;

    /// \returns the address of an exported symbol, or null if there is none
    const void *symbol(const char *name) const;

private:
    int copy_ = -1;      ///< the copy; -1: the file itself is loaded
    std::string loaded_; ///< the dynamic linker's name for it
    void *handle_ = nullptr;
};

} // namespace msfrs
