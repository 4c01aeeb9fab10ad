// SPDX-License-Identifier: GPL-2.0-or-later
// User-mode Linux 6.1 keeps 2,696 bytes of a program's extended registers. Where a processor has more (AMX: 11,008),
// the host's kernel refuses to restore so few, and the guest cannot start a program. Preloaded, this ptrace() sets
// what it was given over what the program has: the rest, which nothing in the guest uses, stays as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

// Bytes; twice what AMX takes. Not on the stack, of which a kernel has little; a guest has one processor.
static _Alignas(64) char registers[24576];

long ptrace(enum __ptrace_request request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    const pid_t pid = va_arg(arguments, pid_t);
    void* const address = va_arg(arguments, void*);
    void* data = va_arg(arguments, void*);
    va_end(arguments);
    long (*const next)(enum __ptrace_request, ...) = dlsym(RTLD_NEXT, "ptrace");
    const struct iovec* given = data;
    struct iovec whole = {registers, sizeof(registers)};
    if (request == PTRACE_SETREGSET && (unsigned long)address == NT_X86_XSTATE) {
        if (next(PTRACE_GETREGSET, pid, address, &whole) < 0)
            return -1;
        if (given->iov_len < whole.iov_len) {
            memcpy(registers, given->iov_base, given->iov_len);
            data = &whole;
        }
    }
    return next(request, pid, address, data);
}
