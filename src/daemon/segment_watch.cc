// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/segment_watch.h"

namespace msfrs {

SegmentWatch::Change SegmentWatch::look()
{
    if (now_ && ledger::Mapping::Find(name_) == now_->id())
        return Change::None;
    try {
        next_ = std::make_unique<ledger::Mapping>(ledger::Mapping::Open(name_));
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
