// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/segment_watch.h"

#include "daemon/descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace msfrs {

bool SegmentWatch::find(Id &id) const
{
    const Descriptor file(shm_open(name_.c_str(), O_RDONLY | O_CLOEXEC, 0));
    struct stat found{};
    if (file.get() < 0 || fstat(file.get(), &found) < 0)
        return false;
    id = {found.st_dev, found.st_ino};
    return true;
}

SegmentWatch::Change SegmentWatch::look()
{
    Id id;
    if (now_ && find(id) && id == id_)
        return Change::None;
    try {
        next_ = std::make_unique<ledger::Mapping>(ledger::Mapping::Open(name_));
        find(id_); // replaced in between: seen the next time
        why_.clear();
        return Change::Other;
    } catch (const ledger::MappingError &error) {
        next_.reset();
        why_ = error.what();
        return now_ ? Change::Gone : Change::None;
    }
}

ledger::Segment *SegmentWatch::change()
{
    now_ = std::move(next_);
    return now_ ? &now_->segment() : nullptr;
}

} // namespace msfrs
