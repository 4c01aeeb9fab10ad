// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Tables that are replaced during look-ups; a separate program for the thread sanitizer.
#include "edge/published.h"

#include "edge/classifier.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace msfrs::test {
namespace {

using namespace edge;

/// A look-up uses a single whole table, which is at least as new as the one published when it began.
TEST(Published, LookupsGoOnWhileTablesAreReplaced)
{
    // Table k has k rules before the one that matches everything, so that the result identifies the table.
    const auto make = [](const size_t k) {
        auto rules = std::vector<Match>(k);
        for (auto &r : rules)
            r.protocol = {255, 255};
        rules.emplace_back();
        return std::make_shared<const Classifier>(rules);
    };
    constexpr size_t Tables = 20;
    Published<Classifier> published(make(0));
    std::atomic<size_t> latest{0};
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> lookups{0};
    std::vector<std::thread> readers;
    for (int n = 0; n < 2; ++n) {
        readers.emplace_back([&] {
            Published<Classifier>::Reader reader(published);
            FlowKey key;
            for (size_t before = 0; !stop;) {
                const size_t atLeast = latest; // published before this lookup began
                const auto &table = reader.get();
                const size_t k = table->find(key);
                EXPECT_EQ(k + 1, table->rules());
                EXPECT_GE(k, atLeast);
                EXPECT_GE(k, before) << "no table comes back";
                before = k;
                ++lookups;
            }
        });
    }
    for (size_t k = 1; k <= Tables; ++k) {
        published.publish(make(k));
        latest = k;
        const uint64_t then = lookups;
        while (lookups == then) // look-ups continue
            std::this_thread::yield();
    }
    stop = true;
    for (auto &r : readers)
        r.join();
    Published<Classifier>::Reader reader(published);
    EXPECT_EQ(reader.get().use_count(), 2) << "the readers have let theirs go";
}

} // namespace
} // namespace msfrs::test
