// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/mapping.h"

#include <cerrno>
#include <cstdio>
#include <sys/shm.h>
#include <system_error>
#include <utility>

namespace msfrs::ledger {

namespace {

std::string KeyText(const std::string &name)
{
    char text[16];
    std::snprintf(text, sizeof(text), "0x%08x", static_cast<unsigned>(KeyOf(name)));
    return text;
}

[[noreturn]] void Fail(const std::string &name, const std::string &what)
{
    throw MappingError("shared memory " + name + ": " + what);
}

std::string Hint(const std::string &name, const int error)
{
    switch (error) {
    case ENOENT: return "; the program that creates it does not run";
    case EACCES: return "; this user has no permission: give it the group of the segment";
    case EEXIST: return "; another program has it, or left it behind: see ipcs -m; ipcrm -M " + KeyText(name) +
                        " removes it";
    case EINVAL:
    case ENOSPC: return "; kernel.shmmax, shmall or shmmni (sysctl) allow no more: raise them, or remove "
                        "unused segments (ipcs -m)";
    case ENOMEM: return "; it needs " + std::to_string(sizeof(Segment)) + " bytes";
    default: return "";
    }
}

[[noreturn]] void FailBy(const std::string &name, const std::string &what, const int error)
{
    Fail(name, what + ": " + std::generic_category().message(error) + Hint(name, error));
}

const void *const NotAttached = reinterpret_cast<void *>(-1); // of shmat()

} // namespace

key_t KeyOf(const std::string &name)
{
    return static_cast<key_t>(ClassKey(name) | 1); // not IPC_PRIVATE, which is 0
}

int Mapping::Find(const std::string &name) { return shmget(KeyOf(name), 0, 0); }

void Mapping::attach(const std::string &name)
{
    const auto memory = shmat(id_, nullptr, 0);
    if (memory == NotAttached)
        FailBy(name, "cannot be mapped", errno);
    segment_ = static_cast<Segment *>(memory);
}

Mapping Mapping::Open(const std::string &name)
{
    const int id = Find(name);
    if (id < 0)
        FailBy(name, "cannot be opened", errno);
    shmid_ds found;
    if (shmctl(id, IPC_STAT, &found) != 0)
        FailBy(name, "cannot be examined", errno);
    if (found.shm_segsz < sizeof(Segment)) {
        Fail(name,
             "it has " + std::to_string(found.shm_segsz) + " bytes; expected " + std::to_string(sizeof(Segment)));
    }
    Mapping made(id);
    made.attach(name);
    std::string why;
    if (!OpenSegment(made.segment_, sizeof(Segment), why))
        Fail(name, why);
    return made;
}

Mapping Mapping::Create(const std::string &name, const unsigned mode)
{
    const int id = shmget(KeyOf(name), sizeof(Segment), IPC_CREAT | IPC_EXCL | static_cast<int>(mode));
    if (id < 0)
        FailBy(name, "cannot be created", errno);
    Mapping made(id);
    made.made_ = true;
    made.attach(name);
    FormatSegment(made.segment_);
    return made;
}

void Mapping::Remove(const std::string &name)
{
    const int id = Find(name);
    shmid_ds found;
    if (id < 0 || shmctl(id, IPC_STAT, &found) != 0 || found.shm_segsz < sizeof(Header))
        return;
    const auto memory = shmat(id, nullptr, SHM_RDONLY);
    if (memory == NotAttached)
        return;
    if (static_cast<const Header *>(memory)->magic.load() == Magic)
        shmctl(id, IPC_RMID, nullptr);
    shmdt(memory);
}

Mapping::Mapping(Mapping &&other) noexcept:
    segment_(std::exchange(other.segment_, nullptr)), id_(other.id_), made_(std::exchange(other.made_, false))
{
}

Mapping::~Mapping()
{
    if (segment_)
        shmdt(segment_);
    if (made_)
        shmctl(id_, IPC_RMID, nullptr);
}

} // namespace msfrs::ledger
