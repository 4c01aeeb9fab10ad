// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A network interface whose receive counter is set by the test.
#pragma once

#include "window/meter.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace msfrs::test {

/// Exists under its name while the object lives. The library opens counters by a plain function, so the names are
/// global to the program; two live interfaces of one name are an error of the test.
class FakeInterface {
public:
    explicit FakeInterface(std::string name);
    ~FakeInterface();
    FakeInterface(const FakeInterface &) = delete;
    FakeInterface &operator=(const FakeInterface &) = delete;

    /// A counter of the interface `name`, whether or not it exists, like the kernel's.
    static std::unique_ptr<InterfaceCounter> Open(const std::string &name);

    const std::string &name() const { return name_; }
    std::optional<uint64_t> bytes = 0; ///< without a value: the interface has disappeared
    uint64_t packets = 0;
    int reads = 0;

private:
    std::string name_;
};

} // namespace msfrs::test
