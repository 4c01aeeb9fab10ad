// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Runs the traces of test/golden/aqm/*.txt; README.md there has their format.
#include "aqm/aqm_queue.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace msfrs::test {
namespace {

std::vector<std::string> Words(const std::string &line)
{
    std::istringstream in(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; in >> word;)
        words.push_back(word);
    return words;
}

struct Trace {
    std::string file;
    size_t line;
    std::vector<std::vector<std::string>> script;
    std::string aqm, verdicts;
};

void PrintTo(const Trace &t, std::ostream *const out) { *out << t.file << ":" << t.line; }

std::vector<Trace> Read(const std::filesystem::path &path)
{
    std::ifstream in(path);
    std::vector<Trace> all;
    std::vector<std::vector<std::string>> script;
    std::string text;
    for (size_t line = 1; std::getline(in, text); ++line) {
        const auto words = Words(text);
        if (words.empty())
            continue;
        if (words[0] != "verdicts") {
            script.push_back(words);
            continue;
        }
        Trace t{path.filename().string(), line, script, "", ""};
        bool named = false;
        for (size_t n = 1; n < words.size(); ++n) {
            if (named) {
                t.verdicts += words[n];
            } else {
                named = words[n].back() == ':';
                t.aqm += (n > 1 ? " " : "") + words[n].substr(0, words[n].size() - named);
            }
        }
        all.push_back(t);
    }
    if (all.empty())
        throw std::invalid_argument(path.string() + ": it has no line with verdicts");
    return all;
}

std::vector<Trace> All()
{
    std::set<std::filesystem::path> files;
    for (const auto &entry : std::filesystem::directory_iterator(TreeFile("test/golden/aqm"))) {
        if (entry.path().extension() == ".txt")
            files.insert(entry.path());
    }
    std::vector<Trace> all;
    for (const auto &file : files) {
        for (const auto &t : Read(file)) {
            if (IsBuilt(ParseVariant(t.aqm, MSFRS_AQM).name))
                all.push_back(t);
        }
    }
    return all;
}

msfrs_class &ClassOf(AqmQueue &q, const std::string &name)
{
    for (auto *const c : q.engine().classes()) {
        if (name == c->name)
            return *c;
    }
    throw std::invalid_argument("there is no class '" + name + "'");
}

std::string Judged(const Trace &t)
{
    AqmQueue q(t.aqm);
    std::string verdicts;
    for (const auto &w : t.script) {
        const auto number = [&](const size_t n, const int64_t otherwise) {
            return w.size() > n ? std::stoll(w[n]) : otherwise;
        };
        if (w[0] == "class") {
            q.addClass(w.at(1), std::stod(w.at(2)));
        } else if (w[0] == "weight") {
            q.engine().setWeight(ClassOf(q, w.at(1)), std::stod(w.at(2)));
        } else if (w[0] == "ecn") {
            q.itemFlags = w.at(1) == "on" ? MSFRS_ECN_CAPABLE : 0;
        } else if (w[0] == "arrive") {
            for (auto n = number(4, 1); n > 0; --n)
                verdicts += q.offer(ClassOf(q, w.at(1)), w.at(2), std::stoll(w.at(3)));
        } else if (w[0] == "send") {
            for (auto n = number(1, 1); n > 0; --n)
                verdicts += q.turn();
        } else if (w[0] == "wait") {
            q.clock.advance(number(1, 1) * Ms);
        } else {
            throw std::invalid_argument("'" + w[0] + "' is no instruction; README.md lists them");
        }
    }
    return verdicts;
}

/// An AQM with the value of its first parameter, which always selects the unit of the queue or which queue counts.
std::string FirstMode(const Variant &v)
{
    const auto part = v.load();
    const std::string choices = part.plugin->ops().params[0].choices;
    return v.name + " of " + choices + ": " + std::to_string(part.params[0].i);
}

class GoldenTrace : public ::testing::TestWithParam<Trace> {};

TEST_P(GoldenTrace, IsKept) { EXPECT_EQ(Judged(GetParam()), GetParam().verdicts) << GetParam().aqm; }

INSTANTIATE_TEST_SUITE_P(, GoldenTrace, ::testing::ValuesIn(All()), [](const auto &test) {
    return std::filesystem::path(test.param.file).stem().string() + "_" + std::to_string(test.param.line) + "_" +
           ParseVariant(test.param.aqm, MSFRS_AQM).testName();
});

TEST(GoldenTraces, CoverEveryAqmInItsModes)
{
    std::set<std::string> seen;
    for (const auto &t : All()) {
        const auto v = ParseVariant(t.aqm, MSFRS_AQM);
        seen.insert(FirstMode(v));
    }
    for (const auto &v : AllVariants(MSFRS_AQM))
        EXPECT_TRUE(seen.count(FirstMode(v))) << FirstMode(v);
}

} // namespace
} // namespace msfrs::test
