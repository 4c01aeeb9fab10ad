// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A temporary directory for the duration of a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

namespace msfrs::test {

/// Empty at first, and accessible only to its owner.
class Directory {
public:
    Directory(): path_(::testing::TempDir() + "msfrs-test-XXXXXX")
    {
        if (!mkdtemp(path_.data()))
            throw std::runtime_error("mkdtemp failed");
    }
    ~Directory() { std::filesystem::remove_all(path_); }
    void add(const std::string &file, const std::string &content = "") { std::ofstream(path_ + "/" + file) << content; }
    const std::string &path() const { return path_; }

private:
    std::string path_;
};

} // namespace msfrs::test
