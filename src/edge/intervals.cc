// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/intervals.h"

#include <algorithm>
#include <cstring>

namespace msfrs::edge {

namespace {

template <class Row>
size_t Hash(const Row &row)
{
    uint64_t h = 0;
    for (const auto word : row.words) {
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

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

template <unsigned Width>
uint32_t Distinct<Width>::add(const Row &row)
{
    if (2 * rows_.size() >= slots_.size()) {
        slots_.assign(std::max<size_t>(64, 2 * slots_.size()), 0);
        for (uint32_t r = 0; r < rows_.size(); ++r)
            enter(r);
    }
    for (size_t slot = Hash(row) % slots_.size(); slots_[slot]; slot = (slot + 1) % slots_.size()) {
        if (std::equal(row.words, row.words + Width, rows_[slots_[slot] - 1].words))
            return slots_[slot] - 1;
    }
    rows_.push_back(row);
    const auto number = static_cast<uint32_t>(rows_.size() - 1);
    enter(number);
    return number;
}

template <unsigned Width>
void Distinct<Width>::enter(const uint32_t row)
{
    size_t slot = Hash(rows_[row]) % slots_.size();
    while (slots_[slot])
        slot = (slot + 1) % slots_.size();
    slots_[slot] = row + 1;
}

template <unsigned Width>
void Distinct<Width>::seal()
{
    slots_ = {};
    rows_.shrink_to_fit();
}

std::optional<VectorId> VectorSet::add(const Vector &v)
{
    LineId ids[BlockLines] = {};
    Summary summary{};
    for (unsigned n = 0; n < lines_; ++n) {
        Lines::Row line;
        std::copy_n(v.data() + n * LineWords, LineWords, line.words);
        const auto id = distinct_.add(line);
        if (id >= MostLines)
            return {};
        ids[n] = static_cast<LineId>(id);
        for (unsigned s = 0; s < 32; ++s)
            summary.words[n / 2] |= uint64_t((line.words[s / 4] >> 16 * (s % 4) & 0xffff) != 0) << (32 * (n % 2) + s);
    }
    Distinct<ListWords>::Row list;
    std::memcpy(list.words, ids, sizeof(ids));
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

PageTable::PageTable(const Intervals<uint32_t> &intervals, const unsigned bits)
{
    // The first entries are for pages that are one interval.
    const auto most = *std::max_element(intervals.vectors.begin(), intervals.vectors.end());
    for (unsigned v = 0; v <= most; ++v)
        leaves_.push_back(static_cast<VectorId>(v));
    single_.resize(most + 1u);
    size_t at = 0;
    if (bits == 16) {
        for (uint32_t page = 0; page <= 256; ++page)
            top_.push_back(leafEntry(intervals, page << 8, at));
    } else {
        for (uint32_t page = 0; page < 65536; ++page)
            top_.push_back(middleEntry(intervals, page << 16, at));
    }
    single_ = {};
    top_.shrink_to_fit();
    middle_.shrink_to_fit();
    leaves_.shrink_to_fit();
}

/// The entry for the 256 keys from `first`. `at`: the interval of `first`, afterwards that of the last key.
uint32_t PageTable::leafEntry(const Intervals<uint32_t> &in, const uint32_t first, size_t &at)
{
    const auto ends = [&](const uint32_t key) { return at + 1 < in.starts.size() && in.starts[at + 1] <= key; };
    while (ends(first))
        ++at;
    if (!ends(first + 255))
        return uint32_t(in.vectors[at]) << 8;
    const auto place = static_cast<uint32_t>(leaves_.size());
    for (uint32_t key = first; key != first + 256; ++key) {
        while (ends(key))
            ++at;
        leaves_.push_back(in.vectors[at]);
    }
    return place << 8 | 0xff;
}

/// The same for the 65536 keys from `first`, by 256 entries of leafEntry().
uint32_t PageTable::middleEntry(const Intervals<uint32_t> &in, const uint32_t first, size_t &at)
{
    while (at + 1 < in.starts.size() && in.starts[at + 1] <= first)
        ++at;
    if (at + 1 == in.starts.size() || in.starts[at + 1] > (first | 0xffff)) {
        auto &place = single_[in.vectors[at]];
        if (place == 0) {
            middle_.push_back(uint32_t(in.vectors[at]) << 8);
            place = static_cast<uint32_t>(middle_.size());
        }
        return (place - 1) << 8;
    }
    const auto place = static_cast<uint32_t>(middle_.size());
    for (uint32_t page = 0; page < 256; ++page)
        middle_.push_back(leafEntry(in, first | page << 8, at));
    return place << 8 | 0xff;
}

size_t PageTable::bytes() const
{
    return (top_.capacity() + middle_.capacity()) * sizeof(uint32_t) + leaves_.capacity() * sizeof(VectorId);
}

void SortedStarts::find(const Address *const keys, const unsigned n, uint32_t *const found) const
{
    constexpr unsigned Most = 64;
    const Address *at[Most];
    const auto &starts = intervals_.starts;
    for (unsigned begin = 0; begin < n; begin += Most) {
        const unsigned here = std::min(n - begin, Most);
        std::fill_n(at, here, starts.data());
        for (size_t left = starts.size(); left > 1;) { // the last start <= key is at[i][0 .. left - 1]
            const size_t half = left / 2;
            for (unsigned i = 0; i < here; ++i) {
                const Address &mid = at[i][half];
                const Address &key = keys[begin + i];
                const bool above = (mid.high < key.high) | ((mid.high == key.high) & (mid.low <= key.low));
                at[i] += above ? half : 0;
            }
            left -= half;
        }
        for (unsigned i = 0; i < here; ++i)
            found[begin + i] = intervals_.vectors[static_cast<size_t>(at[i] - starts.data())];
    }
}

size_t SortedStarts::bytes() const
{
    return intervals_.starts.capacity() * sizeof(Address) + intervals_.vectors.capacity() * sizeof(VectorId);
}

} // namespace msfrs::edge
