// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Runs the scenarios of test/golden/*.txt; README.md there has their format.
#include "support/engine_driver.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

struct Line {
    size_t number;
    std::vector<std::string> words;
};

struct Golden {
    std::string file, name;
    size_t orderLine = 0;
    bool exact = false;
    uint32_t resources = 1;
    std::vector<Line> script;
    Variant scheduler;
    std::string order;
};

std::vector<std::string> Words(std::string text)
{
    text.erase(std::min(text.find('#'), text.size()));
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;)
        words.push_back(word);
    return words;
}

std::string Join(const std::vector<std::string> &words)
{
    std::string text;
    for (const auto &word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

/// One Golden for each order line of a file.
std::vector<Golden> Read(const std::filesystem::path &path)
{
    std::ifstream in(path);
    Golden scenario;
    scenario.file = path.filename().string();
    std::vector<Golden> all;
    std::string text;
    for (size_t number = 1; std::getline(in, text); ++number) {
        auto words = Words(text);
        if (words.empty())
            continue;
        if (words[0] != "order") {
            if (words[0] != "cost") {
                scenario.script.push_back({number, std::move(words)});
                continue;
            }
            if (words.size() < 2 || words.size() > 3 || words[1] != "exact")
                throw std::invalid_argument(scenario.file + ":" + std::to_string(number) +
                                            ": expected cost exact [RESOURCES]");
            scenario.exact = true;
            scenario.resources = words.size() > 2 ? static_cast<uint32_t>(std::stoul(words[2])) : 1;
            continue;
        }
        const auto colon = std::find_if(words.begin(), words.end(), [](const auto &w) { return w.back() == ':'; });
        if (colon == words.end())
            throw std::invalid_argument(scenario.file + ":" + std::to_string(number) +
                                        ": expected order SCHEDULER [name=value ...]: ITEM ...");
        colon->pop_back();
        Golden one;
        one.orderLine = number;
        one.scheduler = ParseVariant(Join({words.begin() + 1, colon + 1}));
        one.order = Join({colon + 1, words.end()});
        all.push_back(std::move(one));
    }
    for (auto &one : all) {
        one.file = scenario.file;
        one.script = scenario.script;
        one.exact = scenario.exact;
        one.resources = scenario.resources;
        one.name = path.stem().string() + "_" + one.scheduler.testName();
        std::replace(one.name.begin(), one.name.end(), '-', '_');
    }
    if (all.empty())
        throw std::invalid_argument(scenario.file + ": it has no order line");
    return all;
}

std::vector<Golden> ReadAll()
{
    std::vector<std::filesystem::path> files;
    for (const auto &entry : std::filesystem::directory_iterator(TreeFile("test/golden"))) {
        if (entry.path().extension() == ".txt")
            files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<Golden> all;
    for (const auto &file : files) {
        for (auto &one : Read(file)) {
            if (IsBuilt(one.scheduler.name))
                all.push_back(std::move(one));
        }
    }
    return all;
}

class Runner {
public:
    explicit Runner(const Golden &g): golden_(g), d_(g.scheduler, SetupOf(g)) {}

    void run()
    {
        for (const auto &line : golden_.script) {
            d_.clock.advance(Ms);
            try {
                step(line.words);
            } catch (const std::exception &error) {
                FAIL() << golden_.file << ":" << line.number << ": " << error.what();
            }
        }
    }

    std::string order() const { return Join(order_); }

private:
    static Driver::Setup SetupOf(const Golden &g)
    {
        Driver::Setup setup;
        setup.cost = g.exact ? Engine::Cost::Exact : Engine::Cost::Measured;
        setup.resources = g.resources;
        return setup;
    }

    msfrs_class &cls(const std::string &name)
    {
        for (auto *const c : d_.engine().classes()) {
            if (name == c->name)
                return *c;
        }
        throw std::invalid_argument("there is no class '" + name + "'");
    }

    Tracked &item(const std::string &name, const bool inService)
    {
        if (name == "oldest" && inService) {
            if (released_.empty())
                throw std::invalid_argument("nothing is in service");
            return *released_.front();
        }
        for (auto *const t : inService ? d_.served() : d_.queued()) {
            if (t->name == name)
                return *t;
        }
        throw std::invalid_argument("'" + name + "' is not " + (inService ? "in service" : "queued") +
                                    "; released so far: " + order());
    }

    Tracked *pick(const msfrs_pick mode)
    {
        auto *const t = d_.pick(mode);
        order_.push_back(t ? t->name : "-");
        if (t)
            released_.push_back(t);
        return t;
    }

    void released(Tracked &t) { released_.erase(std::find(released_.begin(), released_.end(), &t)); }

    bool serve()
    {
        auto *const t = pick(MSFRS_PICK_ANY);
        if (!t)
            return false;
        released(*t);
        d_.finish(*t);
        return true;
    }

    void step(const std::vector<std::string> &w)
    {
        const auto &op = w[0];
        const auto wants = [&](const size_t least, const size_t most) {
            if (w.size() - 1 < least || w.size() - 1 > most)
                throw std::invalid_argument(op + " takes " + std::to_string(least) + " to " + std::to_string(most) +
                                            " words");
        };
        if (op == "class") {
            wants(2, 2);
            d_.addClass(w[1], std::stod(w[2]));
        } else if (op == "weight") {
            wants(2, 2);
            d_.engine().setWeight(cls(w[1]), std::stod(w[2]));
        } else if (op == "arrive") {
            wants(golden_.resources > 1 ? 3 + golden_.resources : 3, 3 + golden_.resources);
            d_.processing.clear();
            for (size_t n = 5; n < w.size(); ++n)
                d_.processing.push_back(std::stoll(w[n]));
            d_.arrive(cls(w[1]), w[2], w.size() > 4 ? std::stoll(w[4]) : 0, w[3]);
        } else if (op == "pick") {
            wants(0, 2);
            const bool fresh = w.size() > 1 && w[1] == "fresh";
            for (int n = w.size() > 1u + fresh ? std::stoi(w.back()) : 1; n > 0; --n)
                pick(fresh ? MSFRS_PICK_FRESH : MSFRS_PICK_ANY);
        } else if (op == "charge") {
            wants(2, 2);
            d_.charge(item(w[1], true), std::stoll(w[2]));
        } else if (op == "expect") {
            wants(2, 2);
            const bool queued = std::any_of(d_.queued().begin(), d_.queued().end(),
                                            [&](const Tracked *t) { return t->name == w[1]; });
            d_.expect(item(w[1], !queued), std::stoll(w[2]));
        } else if (op == "pass") {
            wants(1, 1);
            d_.clock.advance(std::stoll(w[1]) * Second);
        } else if (op == "requeue" || op == "end") {
            wants(1, 1);
            auto &t = item(w[1], true);
            released(t);
            op == "end" ? d_.done(t) : d_.requeue(t);
        } else if (op == "gone") {
            wants(1, 1);
            d_.remove(item(w[1], false));
        } else if (op == "excess") {
            wants(3, 3);
            d_.engine().chargeFlow(d_.engine().flow(cls(w[1]), w[2]), std::stoll(w[3]), d_.clock.now());
        } else if (op == "serve") {
            wants(0, 1);
            for (int n = w.size() > 1 ? std::stoi(w[1]) : 1; n > 0; --n)
                serve();
        } else if (op == "drain") {
            wants(0, 0);
            while (!d_.queued().empty() && serve()) {
            }
        } else {
            throw std::invalid_argument("'" + op + "' is no instruction; README.md lists them");
        }
    }

    const Golden &golden_;
    Driver d_;
    std::vector<std::string> order_;
    std::vector<Tracked *> released_; ///< in service, longest first
};

class GoldenOrder : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenOrder, IsKept)
{
    Runner runner(GetParam());
    runner.run();
    EXPECT_EQ(runner.order(), GetParam().order)
        << GetParam().file << ":" << GetParam().orderLine << ": " << GetParam().scheduler.text();
}

std::vector<Golden> &All()
{
    static std::vector<Golden> all = ReadAll();
    return all;
}

INSTANTIATE_TEST_SUITE_P(, GoldenOrder, ::testing::ValuesIn(All()), [](const auto &test) { return test.param.name; });

void PrintTo(const Golden &g, std::ostream *const out) { *out << g.file << ":" << g.orderLine; }

/// Every mode of every scheduler must be in some file: a mode without an order is a gap.
TEST(GoldenFiles, CoverEveryModeOfEveryScheduler)
{
    for (const auto &variant : AllVariants(MSFRS_SCHED)) {
        const bool covered = std::any_of(All().begin(), All().end(), [&](const Golden &g) {
            const auto values = [](const Variant &v) {
                const auto part = v.load();
                std::vector<int64_t> all;
                for (const auto &value : part.params)
                    all.push_back(value.i);
                return all;
            };
            return g.scheduler.name == variant.name && values(g.scheduler) == values(variant);
        });
        EXPECT_TRUE(covered) << "no golden order for " << variant.text();
    }
}

} // namespace
} // namespace msfrs::test
