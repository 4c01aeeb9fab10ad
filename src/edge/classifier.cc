// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/classifier.h"

#include "edge/block.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace msfrs::edge {

namespace {

void Check(const Match &m, const size_t number)
{
    const auto refuse = [&](const char *const what) {
        throw std::invalid_argument("rule " + std::to_string(number) + ": " + what);
    };
    const Address last = m.family == Family::V4 ? Address{0, LastAddress4} : LastAddress;
    for (const auto *const r : {&m.source, &m.destination}) {
        const bool whole = r->first == Address{} && r->last == LastAddress;
        if (r->last < r->first)
            refuse("an address range whose last is before its first");
        if (m.family ? !whole && last < r->last : !whole)
            refuse(m.family ? "an address range beyond IPv4's" : "an address range of no family");
    }
    for (const auto *const r : {&m.sourcePort, &m.destinationPort}) {
        if (r->last < r->first || r->last > NoPort)
            refuse("a port range that is reversed or beyond 65536, which stands for no port");
    }
    if (m.protocol.last < m.protocol.first || m.protocol.last > 255)
        refuse("a protocol range that is reversed or beyond 255");
}

std::vector<std::unique_ptr<Block>> Blocks(const std::vector<Match> &rules, const Family family)
{
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<uint32_t> numbers;
    for (size_t r = 0; r < rules.size(); ++r) {
        if (!rules[r].family || rules[r].family == family)
            numbers.push_back(static_cast<uint32_t>(r));
        if (numbers.size() == BlockRules || (r + 1 == rules.size() && !numbers.empty())) {
            blocks.push_back(std::make_unique<Block>(rules, std::move(numbers), family));
            numbers.clear();
        }
    }
    return blocks;
}

/// Keys without a match proceed to the next block; overwrites the lists.
void FindGroup(const std::vector<std::unique_ptr<Block>> &blocks, const FlowKey **const keys, unsigned n,
               uint32_t **const found)
{
    for (auto block = blocks.begin(); block != blocks.end() && n > 0; ++block) {
        uint32_t first[GroupSize];
        Vectors v;
        (*block)->locateAddresses(keys, n, v);
        (*block)->locateServices(keys, n, v);
        (*block)->intersect(v, n, first);
        unsigned left = 0;
        for (unsigned i = 0; i < n; ++i) {
            *found[i] = first[i];
            if (first[i] == NoMatch) {
                keys[left] = keys[i];
                found[left++] = found[i];
            }
        }
        n = left;
    }
}

} // namespace

Classifier::Classifier(const std::vector<Match> &rules)
{
    if (rules.size() >= NoMatch)
        throw std::invalid_argument("more rules than numbers");
    for (size_t r = 0; r < rules.size(); ++r)
        Check(rules[r], r);
    blocks_[0] = Blocks(rules, Family::V4);
    blocks_[1] = Blocks(rules, Family::V6);
}

Classifier::~Classifier() = default;

void Classifier::find(const FlowKey *const keys, const size_t n, uint32_t *const found) const
{
    for (size_t begin = 0; begin < n; begin += GroupSize) {
        const FlowKey *of[2][GroupSize];
        uint32_t *to[2][GroupSize];
        unsigned count[2] = {};
        for (size_t i = begin; i < std::min<size_t>(n, begin + GroupSize); ++i) {
            const bool v6 = keys[i].family == Family::V6;
            of[v6][count[v6]] = &keys[i];
            to[v6][count[v6]++] = &found[i];
            found[i] = NoMatch; // there may be no block
        }
        for (const bool v6 : {false, true})
            FindGroup(blocks_[v6], of[v6], count[v6], to[v6]);
    }
}

size_t Classifier::bytes() const
{
    size_t sum = sizeof(*this);
    for (const auto &blocks : blocks_) {
        for (const auto &block : blocks)
            sum += block->bytes();
    }
    return sum;
}

} // namespace msfrs::edge
