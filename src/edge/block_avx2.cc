// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The classifier's lookup with AVX2: the tables of eight keys at a time by gathers, and the vectors a cache line
/// (512 rules) at a time, so that a wrong guess of the summaries costs one more line and not up to eight words.
#include "edge/block.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#define AVX2 __attribute__((target("avx2")))

namespace msfrs::edge {

namespace {

constexpr unsigned Lanes = 8;

/// Fields of a group of keys, side by side.
struct alignas(32) Columns {
    uint32_t source[GroupSize], destination[GroupSize], sourcePort[GroupSize], destinationPort[GroupSize],
        protocol[GroupSize];
};

AVX2 __m256i Load(const uint32_t *const from) { return _mm256_load_si256(reinterpret_cast<const __m256i *>(from)); }

AVX2 __m256i Gather(const uint32_t *const table, const __m256i at)
{
    return _mm256_i32gather_epi32(reinterpret_cast<const int *>(table), at, 4);
}

/// Loads 32 bits for each of 16: the tables have an entry more than they need.
AVX2 __m256i Gather(const VectorId *const table, const __m256i at)
{
    return _mm256_and_si256(_mm256_i32gather_epi32(reinterpret_cast<const int *>(table), at, 2),
                            _mm256_set1_epi32(0xffff));
}

/// PageTable: place of an entry's page, and the masked index into it.
AVX2 __m256i InPage(const __m256i entry, const __m256i key)
{
    const auto index = _mm256_and_si256(_mm256_and_si256(key, entry), _mm256_set1_epi32(0xff));
    return _mm256_add_epi32(_mm256_srli_epi32(entry, 8), index);
}

AVX2 __m256i Find16(const PageTable &t, const __m256i key)
{
    return Gather(t.leaves(), InPage(Gather(t.top(), _mm256_srli_epi32(key, 8)), key));
}

AVX2 __m256i Find32(const PageTable &t, const __m256i key)
{
    const auto top = Gather(t.top(), _mm256_srli_epi32(key, 16));
    const auto middle = Gather(t.middle(), InPage(top, _mm256_srli_epi32(key, 8)));
    return Gather(t.leaves(), InPage(middle, key));
}

AVX2 __m256i Find(const Pairing &p, const __m256i a, const __m256i b)
{
    const auto row = _mm256_mullo_epi32(a, _mm256_set1_epi32(static_cast<int>(p.stride)));
    return Gather(p.table.data(), _mm256_add_epi32(row, b));
}

AVX2 void Store(uint32_t *const to, const __m256i v) { _mm256_store_si256(reinterpret_cast<__m256i *>(to), v); }

/// locateAddresses() and locateServices() for a whole number of lanes.
AVX2 void Locate(const Block &b, const Columns &c, const unsigned n, Vectors &v)
{
    for (unsigned i = 0; i < n; i += Lanes) {
        if (b.family == Family::V4) {
            Store(&v.of[0][i], Find32(*b.source4, Load(&c.source[i])));
            Store(&v.of[1][i], Find32(*b.destination4, Load(&c.destination[i])));
        }
        const auto from = Find16(*b.sourcePort, Load(&c.sourcePort[i]));
        const auto to = Find16(*b.destinationPort, Load(&c.destinationPort[i]));
        const auto p = Gather(b.protocol.data(), Load(&c.protocol[i]));
        if (b.axes.size() == 3) {
            Store(&v.of[2][i], Find(b.service, from, Find(b.port, to, p)));
        } else {
            Store(&v.of[2][i], from);
            Store(&v.of[3][i], b.axes.size() == 4 ? Find(b.port, to, p) : to);
            Store(&v.of[4][i], p);
        }
    }
}

AVX2 __m256i Load(const VectorSet::Summary &from)
{
    return _mm256_load_si256(reinterpret_cast<const __m256i *>(from.words));
}

AVX2 __m256i LoadHalf(const VectorSet::Lines::Row &line, const unsigned half)
{
    return _mm256_load_si256(reinterpret_cast<const __m256i *>(line.words) + half);
}

/// Which of the eight words of two halves of a line have a bit.
AVX2 unsigned NotZero(const __m256i low, const __m256i high)
{
    const auto zero = _mm256_setzero_si256();
    const auto of = [&](const __m256i half) __attribute__((target("avx2"))) {
        return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(half, zero))));
    };
    return (of(low) | of(high) << 4) ^ 0xff;
}

using Row = VectorSet::Lines::Row;

AVX2 __m256i And(const __m256i a, const __m256i b) { return _mm256_and_si256(a, b); }

/// The lowest bit of a line's two halves; there is one. \param some as of NotZero()
AVX2 unsigned FirstBit(const __m256i low, const __m256i high, const unsigned some)
{
    alignas(32) uint64_t words[LineWords];
    _mm256_store_si256(reinterpret_cast<__m256i *>(words), low);
    _mm256_store_si256(reinterpret_cast<__m256i *>(words) + 1, high);
    const auto w = static_cast<unsigned>(__builtin_ctz(some));
    return 64 * w + static_cast<unsigned>(__builtin_ctzll(words[w]));
}

/// Block::intersect(). A is 1 .. b.axes.size() - 1: a pack, since loops over so few axes stay loops.
template <size_t... A>
AVX2 void Intersect(const Block &b, const Vectors &v, const unsigned n, uint32_t *const found,
                    std::index_sequence<A...>)
{
    const uint32_t *const rules = b.rules.data();
    const Row *const lines[] = {b.axes[0].line(), b.axes[A].line()...};
    if (b.axes[0].lines() == 1) { // then vector n is line n
        for (unsigned i = 0; i < n; ++i) {
            const Row *const at[] = {lines[0] + v.of[0][i], lines[A] + v.of[A][i]...};
            auto low = LoadHalf(*at[0], 0), high = LoadHalf(*at[0], 1);
            ((low = And(low, LoadHalf(*at[A], 0)), high = And(high, LoadHalf(*at[A], 1))), ...);
            const unsigned some = NotZero(low, high);
            found[i] = some ? rules[FirstBit(low, high, some)] : NoMatch;
        }
        return;
    }
    const VectorSet::Summary *const summaries[] = {b.axes[0].summaries(), b.axes[A].summaries()...};
    const VectorSet::LineId *const lists[] = {b.axes[0].lists(), b.axes[A].lists()...};
    unsigned left[GroupSize]; // of keys[i]: which lines may have a bit
    for (unsigned i = 0; i < n; ++i) {
        auto may = Load(summaries[0][v.of[0][i]]);
        ((may = And(may, Load(summaries[A][v.of[A][i]]))), ...);
        const auto none = _mm256_cmpeq_epi32(may, _mm256_setzero_si256());
        left[i] = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(none))) ^ 0xff;
        const auto place = static_cast<unsigned>(__builtin_ctz(left[i] | 1u << (BlockLines - 1)));
        const auto prefetch = [&](const size_t a) {
            const Row *const line = lines[a] + lists[a][v.of[a][i] * BlockLines + place];
            _mm_prefetch(reinterpret_cast<const char *>(line), _MM_HINT_T0);
        };
        prefetch(0);
        (prefetch(A), ...);
    }
    for (unsigned i = 0; i < n; ++i) {
        found[i] = NoMatch;
        for (; left[i]; left[i] &= left[i] - 1) {
            const auto place = static_cast<unsigned>(__builtin_ctz(left[i]));
            const Row *const at[] = {lines[0] + lists[0][v.of[0][i] * BlockLines + place],
                                     lines[A] + lists[A][v.of[A][i] * BlockLines + place]...};
            auto low = LoadHalf(*at[0], 0), high = LoadHalf(*at[0], 1);
            ((low = And(low, LoadHalf(*at[A], 0)), high = And(high, LoadHalf(*at[A], 1))), ...);
            if (const unsigned some = NotZero(low, high)) {
                found[i] = rules[64 * LineWords * place + FirstBit(low, high, some)];
                break;
            }
        }
    }
}

} // namespace

bool Block::HasAvx2() { return __builtin_cpu_supports("avx2"); }

AVX2 void Block::findAvx2(const FlowKey *const *const keys, const unsigned n, uint32_t *const found) const
{
    Vectors v;
    if (n < Lanes) { // half-empty gathers cost more than they save
        locateAddresses(keys, n, v);
        locateServices(keys, n, v);
    } else {
        Columns c;
        const unsigned whole = (n + Lanes - 1) / Lanes * Lanes;
        for (unsigned i = 0; i < whole; ++i) {
            const FlowKey &k = *keys[i < n ? i : 0];
            c.source[i] = static_cast<uint32_t>(k.source.low);
            c.destination[i] = static_cast<uint32_t>(k.destination.low);
            c.sourcePort[i] = k.sourcePort;
            c.destinationPort[i] = k.destinationPort;
            c.protocol[i] = k.protocol;
        }
        Locate(*this, c, whole, v);
        if (family == Family::V6)
            locateAddresses(keys, n, v);
    }
    switch (axes.size()) {
    case 3: Intersect(*this, v, n, found, std::index_sequence<1, 2>()); break;
    case 4: Intersect(*this, v, n, found, std::index_sequence<1, 2, 3>()); break;
    default: Intersect(*this, v, n, found, std::index_sequence<1, 2, 3, 4>()); break;
    }
}

} // namespace msfrs::edge

#else

namespace msfrs::edge {

bool Block::HasAvx2() { return false; }

void Block::findAvx2(const FlowKey *const *, unsigned, uint32_t *) const
{
    __builtin_unreachable(); // Classifier refuses Code::Avx2
}

} // namespace msfrs::edge

#endif
