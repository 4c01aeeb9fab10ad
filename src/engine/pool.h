// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Blocks of one size, in slabs aligned to cache lines. The block freed last is allocated first, while it is still in
/// the cache. Slabs are kept until the pool is destroyed, so memory is that of the most blocks ever in use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <sys/mman.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace msfrs {

class Pool {
public:
    /// \param size bytes of a block, > 0
    explicit Pool(const size_t size): stride_((size + Line - 1) / Line * Line) {}
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;
    ~Pool()
    {
        for (const auto &slab : slabs_) {
            ASAN_UNPOISON_MEMORY_REGION(slab.memory, slab.blocks * stride_);
            ::operator delete(slab.memory, std::align_val_t(AlignmentOf(slab.blocks * stride_)));
        }
    }

    /// Bytes of memory that a block takes.
    size_t stride() const { return stride_; }

    /// Not cleared. \throws std::bad_alloc
    void *get()
    {
        if (!free_)
            grow();
        void *const block = free_;
        ASAN_UNPOISON_MEMORY_REGION(block, stride_);
        free_ = *static_cast<void **>(block);
        return block;
    }

    void put(void *const block)
    {
        *static_cast<void **>(block) = free_;
        free_ = block;
        ASAN_POISON_MEMORY_REGION(block, stride_);
    }

private:
    static constexpr size_t Line = 64, Aligned = 2 * Line; // processors fetch lines in pairs
    static constexpr size_t Huge = size_t(2) << 20;        // bytes of a huge page; slabs double up to that
    struct Slab {
        char *memory;
        size_t blocks;
    };

    static size_t AlignmentOf(const size_t bytes) { return bytes > Huge / 2 ? Huge : Aligned; }

    void grow()
    {
        const size_t last = slabs_.empty() ? 8 : slabs_.back().blocks; // the first slab has 16
        const size_t blocks = std::max<size_t>(std::min(2 * last, Huge / stride_), 1);
        const size_t alignment = AlignmentOf(blocks * stride_);
        const size_t bytes = alignment == Huge ? Huge : blocks * stride_; // nothing else shares a huge page
        slabs_.reserve(slabs_.size() + 1);
        const auto memory = static_cast<char *>(::operator new(bytes, std::align_val_t(alignment)));
        slabs_.push_back({memory, blocks});
#ifdef MADV_HUGEPAGE
        // So many blocks span more small pages than the TLB has entries. A hint: it may fail.
        if (alignment == Huge)
            madvise(memory, Huge, MADV_HUGEPAGE);
#endif
        for (size_t n = blocks; n > 0; --n) // the first block is given out first
            put(memory + (n - 1) * stride_);
    }

    size_t stride_;
    void *free_ = nullptr;
    std::vector<Slab> slabs_;
};

} // namespace msfrs
