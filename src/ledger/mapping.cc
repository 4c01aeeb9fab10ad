// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/mapping.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace msfrs::ledger {

namespace {

[[noreturn]] void Fail(const std::string &name, const std::string &what)
{
    throw MappingError("shared memory " + name + ": " + what);
}

[[noreturn]] void FailBy(const std::string &name, const std::string &what, const int error)
{
    const auto hint = error == ENOENT   ? "; who makes it does not run"
                      : error == EACCES ? "; this user is not allowed to, and its group should be"
                      : error == EEXIST ? "; another makes it, or one that ended badly has left it behind"
                                        : "";
    Fail(name, what + ": " + std::generic_category().message(error) + hint);
}

struct File {
    explicit File(const int n): fd(n) {}
    ~File() { close(fd); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    int fd;
};

void *Map(const std::string &name, const int fd)
{
    const auto memory = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        FailBy(name, "cannot be mapped", errno);
    return memory;
}

} // namespace

Mapping Mapping::Open(const std::string &name)
{
    const int fd = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        FailBy(name, "cannot be opened", errno);
    const File file(fd);
    struct stat found;
    if (fstat(fd, &found) != 0)
        FailBy(name, "cannot be looked at", errno);
    // Beyond its end memory would not be there.
    if (static_cast<uint64_t>(found.st_size) < sizeof(Segment))
        Fail(name, "it has " + std::to_string(found.st_size) + " bytes; wanted are " + std::to_string(sizeof(Segment)));
    Mapping made;
    const auto memory = Map(name, fd);
    std::string why;
    made.segment_ = OpenSegment(memory, sizeof(Segment), why);
    if (!made.segment_) {
        munmap(memory, sizeof(Segment));
        Fail(name, why);
    }
    return made;
}

Mapping Mapping::Create(const std::string &name, const unsigned mode)
{
    const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        FailBy(name, "cannot be made", errno);
    const File file(fd);
    Mapping made;
    made.remove_ = name;
    // The umask takes from the mode.
    if (fchmod(fd, mode) != 0 || ftruncate(fd, sizeof(Segment)) != 0)
        FailBy(name, "cannot be made", errno);
    made.segment_ = static_cast<Segment *>(Map(name, fd));
    FormatSegment(made.segment_);
    return made;
}

Mapping::Mapping(Mapping &&other) noexcept:
    segment_(std::exchange(other.segment_, nullptr)), remove_(std::exchange(other.remove_, std::string()))
{
}

Mapping::~Mapping()
{
    if (segment_)
        munmap(segment_, sizeof(Segment));
    if (!remove_.empty())
        shm_unlink(remove_.c_str());
}

} // namespace msfrs::ledger
