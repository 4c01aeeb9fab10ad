// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/intervals.h"

#include <algorithm>
#include <cstring>

namespace msfrs::edge {

namespace {

uint32_t Next(const uint32_t key) { return key + 1; }
Address Next(const Address &key) { return key.next(); }

} // namespace

template <class Key>
Intervals<Key> Cut(const std::vector<Range<Key>> &ranges, const Key last, VectorSet &vectors)
{
    struct Edge {
        Key at;
        uint32_t range;
    };
    std::vector<Edge> edges; // here the vector changes: a range begins, or has just ended
    edges.reserve(2 * ranges.size());
    for (uint32_t r = 0; r < ranges.size(); ++r) {
        edges.push_back({ranges[r].first, r});
        if (ranges[r].last < last)
            edges.push_back({Next(ranges[r].last), r});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) { return a.at < b.at; });

    Intervals<Key> all;
    Vector now{};
    Key start{};
    for (auto e = edges.begin();;) {
        for (; e != edges.end() && !(start < e->at); ++e)
            now[e->range / 64] ^= uint64_t(1) << e->range % 64;
        all.starts.push_back(start);
        all.vectors.push_back(vectors.add(now).value()); // n ranges have at most Most vectors
        if (e == edges.end())
            return all;
        start = e->at;
    }
}
template Intervals<uint32_t> Cut(const std::vector<Range<uint32_t>> &, uint32_t, VectorSet &);
template Intervals<Address> Cut(const std::vector<Range<Address>> &, Address, VectorSet &);

std::optional<VectorId> VectorSet::add(const Vector &v)
{
    LineId ids[BlockLines] = {};
    Summary summary{};
    for (unsigned n = 0; n < lines_; ++n) {
        Lines::Row line;
        std::copy_n(v.data() + n * LineWords, LineWords, line.begin());
        const auto id = distinct_.add(line);
        if (id >= MostLines)
            return {};
        ids[n] = static_cast<LineId>(id);
        for (unsigned s = 0; s < 32; ++s)
            summary.words[n / 2] |= uint64_t((line[s / 4] >> 16 * (s % 4) & 0xffff) != 0) << (32 * (n % 2) + s);
    }
    Distinct<ListWords>::Row list;
    std::memcpy(list.data(), ids, sizeof(ids));
    const auto number = lists_.add(list);
    if (number >= Most)
        return {};
    if (number == summaries_.size())
        summaries_.push_back(summary);
    return static_cast<VectorId>(number);
}

void VectorSet::seal()
{
    lists_.seal();
    distinct_.seal();
    summaries_.shrink_to_fit();
}

Vector VectorSet::copy(const size_t v) const
{
    Vector all{};
    for (unsigned w = 0; w < lines_ * LineWords; ++w)
        all[w] = word(v, w);
    return all;
}

size_t VectorSet::bytes() const
{
    return summaries_.capacity() * sizeof(Summary) + lists_.bytes() + distinct_.bytes();
}

PageTable::PageTable(const Intervals<uint32_t> &in, const unsigned bits)
{
    const auto most = *std::max_element(in.vectors.begin(), in.vectors.end());
    for (unsigned v = 0; v <= most; ++v) {
        leaves_.push_back(static_cast<VectorId>(v));
        if (bits == 32)
            middle_.push_back(v << 8);
    }
    size_t at = 0; // the interval of the latest key
    const auto ends = [&](const uint32_t key) { return at + 1 < in.starts.size() && in.starts[at + 1] <= key; };
    // The entry for the keys from `first` to `last`: a page of 256 entries that `add` appends, unless one interval
    // has them all.
    const auto entry = [&](const uint32_t first, const uint32_t last, const auto &page, const auto &add) {
        while (ends(first))
            ++at;
        if (!ends(last))
            return uint32_t{in.vectors[at]} << 8;
        const auto place = static_cast<uint32_t>(page.size());
        for (uint32_t n = 0; n < 256; ++n)
            add(n);
        return place << 8 | 0xff;
    };
    const auto leafEntry = [&](const uint32_t first) {
        return entry(first, first + 0xff, leaves_, [&](const uint32_t n) {
            while (ends(first + n))
                ++at;
            leaves_.push_back(in.vectors[at]);
        });
    };
    const auto middleEntry = [&](const uint32_t first) {
        return entry(first, first + 0xffff, middle_,
                     [&](const uint32_t n) { middle_.push_back(leafEntry(first + (n << 8))); });
    };
    const uint32_t pages = bits == 32 ? 65536 : 257;
    for (uint32_t page = 0; page < pages; ++page)
        top_.push_back(bits == 32 ? middleEntry(page << 16) : leafEntry(page << 8));
    top_.shrink_to_fit();
    middle_.shrink_to_fit();
    leaves_.shrink_to_fit();
}

size_t PageTable::bytes() const
{
    return (top_.capacity() + middle_.capacity()) * sizeof(uint32_t) + leaves_.capacity() * sizeof(VectorId);
}

void SortedStarts::find(const Address *const keys, const unsigned n, uint32_t *const found) const
{
    const auto &starts = intervals_.starts;
    const Address *at[GroupSize];
    std::fill_n(at, n, starts.data());
    for (size_t left = starts.size(); left > 1;) { // the last start <= key is at[i][0 .. left - 1]
        const size_t half = left / 2;
        for (unsigned i = 0; i < n; ++i) {
            const Address &mid = at[i][half];
            const Address &key = keys[i];
            const bool above = (mid.high < key.high) | ((mid.high == key.high) & (mid.low <= key.low));
            at[i] += above ? half : 0;
        }
        left -= half;
    }
    for (unsigned i = 0; i < n; ++i)
        found[i] = intervals_.vectors[static_cast<size_t>(at[i] - starts.data())];
}

size_t SortedStarts::bytes() const
{
    return intervals_.starts.capacity() * sizeof(Address) + intervals_.vectors.capacity() * sizeof(VectorId);
}

} // namespace msfrs::edge
