// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Queued items of several flows in the order in which they were enqueued. The links are a scheduler's item state:
/// appending, and removing anywhere, is O(1).
#pragma once

#include "plugin/msfrs_plugin.h"

namespace msfrs {

/// The item state of a scheduler that uses ItemList.
struct ItemLinks {
    msfrs_item *prev, *next;
};

/// Zeroed memory is an empty list.
class ItemList {
public:
    bool empty() const { return !head_; }
    msfrs_item *head() const { return head_; }
    msfrs_item *tail() const { return tail_; }

    void append(msfrs_item &item)
    {
        LinksOf(item) = {tail_, nullptr};
        (tail_ ? LinksOf(*tail_).next : head_) = &item;
        tail_ = &item;
    }

    void erase(msfrs_item &item)
    {
        const auto links = LinksOf(item);
        (links.prev ? LinksOf(*links.prev).next : head_) = links.next;
        (links.next ? LinksOf(*links.next).prev : tail_) = links.prev;
    }

private:
    static ItemLinks &LinksOf(const msfrs_item &item) { return *static_cast<ItemLinks *>(item.state); }

    msfrs_item *head_, *tail_;
};

} // namespace msfrs
