// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/host.h"

#include "support/fake_interface.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace msfrs::test {

EngineHost Host::engine()
{
    return {[this](const int level, const std::string &text) { log_.push_back({level, text}); },
            [this] { return random_.bits(); }};
}

RequestHost Host::requests()
{
    RequestHost host;
    host.log = engine().log;
    host.random = engine().random;
    host.openCounter = FakeInterface::Open;
    return host;
}

std::string Host::logged(const int level) const
{
    std::vector<std::pair<std::string, size_t>> lines; // a failing plugin may log the same line a thousand times
    for (const auto &line : log_) {
        if (line.level != level)
            continue;
        const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto &l) { return l.first == line.text; });
        if (same == lines.end())
            lines.emplace_back(line.text, 1);
        else
            ++same->second;
    }
    std::string all;
    for (const auto &line : lines)
        all += line.first + (line.second > 1 ? " (" + std::to_string(line.second) + " times)" : "") + "\n";
    return all;
}

namespace {

std::map<std::string, FakeInterface *> &Interfaces()
{
    static std::map<std::string, FakeInterface *> all;
    return all;
}

class FakeCounter final : public InterfaceCounter {
public:
    explicit FakeCounter(std::string name): name_(std::move(name)) {}

    std::optional<Received> read() override
    {
        const auto found = Interfaces().find(name_);
        if (found == Interfaces().end())
            return {};
        auto &interface = *found->second;
        ++interface.reads;
        return interface.bytes ? std::optional<Received>({*interface.bytes, interface.packets}) : std::nullopt;
    }

private:
    std::string name_;
};

} // namespace

FakeInterface::FakeInterface(std::string name): name_(std::move(name))
{
    [[maybe_unused]] const bool added = Interfaces().emplace(name_, this).second;
    assert(added);
}

FakeInterface::~FakeInterface() { Interfaces().erase(name_); }

std::unique_ptr<InterfaceCounter> FakeInterface::Open(const std::string &name)
{
    return std::make_unique<FakeCounter>(name);
}

} // namespace msfrs::test
