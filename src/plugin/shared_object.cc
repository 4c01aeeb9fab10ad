// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/shared_object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs {

namespace {

#ifdef MFD_NOEXEC_SEAL
constexpr unsigned NoProgram = MFD_NOEXEC_SEAL;
#else
constexpr unsigned NoProgram = 0x0008u; // since Linux 6.3: can be mapped, but not executed as a program
#endif

/// Creates an anonymous file in memory. \returns a descriptor or -1
int NewMemory(const std::string &path)
{
    constexpr size_t Longest = 200; // of 249
    const auto name = "msfrs:" + (path.size() > Longest ? "..." + path.substr(path.size() - Longest) : path);
    constexpr unsigned Flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int memory = memfd_create(name.c_str(), Flags | NoProgram); // the only kind that vm.memfd_noexec=2 allows
    return memory >= 0 ? memory : memfd_create(name.c_str(), Flags);
}

/// Fills `memory` with the contents of the file, and seals it.
bool Copy(const std::string &path, const int memory)
{
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not block us
    if (file < 0)
        return false;
    struct stat status;
    bool whole = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    for (off_t left = status.st_size; whole && left > 0;) {
        const auto some = sendfile(memory, file, nullptr, static_cast<size_t>(left));
        whole = some > 0;
        left -= some;
    }
    close(file);
    return whole && fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
}

/// A path of the memory. By the process id others, such as a debugger, find it too, unless /proc has other ids.
std::string PathOf(const int memory)
{
    const auto file = "/fd/" + std::to_string(memory);
    const auto path = "/proc/" + std::to_string(getpid()) + file;
    struct stat there, here;
    const bool same = stat(path.c_str(), &there) == 0 && fstat(memory, &here) == 0 && there.st_dev == here.st_dev &&
                      there.st_ino == here.st_ino;
    return same ? path : "/proc/self" + file;
}

} // namespace

SharedObject::SharedObject(const std::string &path)
{
    constexpr int Mode = RTLD_NOW | RTLD_LOCAL;
    copy_ = NewMemory(path);
    if (copy_ >= 0 && Copy(path, copy_)) {
        loaded_ = PathOf(copy_);
        handle_ = dlopen(loaded_.c_str(), Mode);
    }
    if (handle_)
        return;
    if (copy_ >= 0)
        close(copy_);
    copy_ = -1;
    dlerror();
    handle_ = dlopen(path.c_str(), Mode);
    if (!handle_)
        throw std::runtime_error(dlerror());
}

SharedObject::~SharedObject()
{
    dlclose(handle_);
    if (copy_ < 0)
        return;
    // Some objects cannot be unloaded (a symbol that must be unique in the process). Their name must then not be
    // reused: the dynamic linker would take another object of that name for this one.
    if (void *const still = dlopen(loaded_.c_str(), RTLD_LAZY | RTLD_NOLOAD))
        dlclose(still);
    else
        close(copy_);
}

const void *SharedObject::symbol(const char *const name) const { return dlsym(handle_, name); }

} // namespace msfrs
