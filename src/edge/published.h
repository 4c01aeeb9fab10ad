// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An immutable object that is replaced while other threads read it, as in the kernel's RCU: readers never wait for
/// the construction of the next one, and keep theirs until they call get() again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace msfrs::edge {

template <class T>
class Published {
public:
    explicit Published(std::shared_ptr<const T> first): current_(std::move(first)) {}

    /// From any thread; T was built before, without a lock. The old object is freed with its last reader.
    void publish(std::shared_ptr<const T> next)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        current_.swap(next);
        version_.fetch_add(1, std::memory_order_release);
    } // `next`, the old object, is released only here

    /// One thread's view. Costs an atomic load as long as nothing is published.
    class Reader {
    public:
        explicit Reader(const Published &from): from_(from) { fetch(); }
        /// The latest; the reference stays valid until the next call.
        const std::shared_ptr<const T> &get()
        {
            if (from_.version_.load(std::memory_order_acquire) != seen_)
                fetch();
            return mine_;
        }

    private:
        void fetch()
        {
            const std::lock_guard<std::mutex> lock(from_.mutex_);
            mine_ = from_.current_;
            seen_ = from_.version_.load(std::memory_order_relaxed);
        }

        const Published &from_;
        std::shared_ptr<const T> mine_;
        uint64_t seen_ = 0;
    };

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const T> current_;
    std::atomic<uint64_t> version_{0};
};

} // namespace msfrs::edge
