// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The files with names of users, read again when they change.
#pragma once

#include "satellites/page/config.h"
#include "satellites/page/name_book.h"

#include <functional>
#include <optional>

namespace msfrs::page {

class NameFiles {
public:
    using Log = std::function<void(const std::string &)>;

    static constexpr size_t MostSize = 8 << 20; ///< bytes of a file

    explicit NameFiles(std::vector<NameFile> files): files_(std::move(files)) {}

    /// Reads the files if one has changed since the last call. \param log receives why one cannot be read, once
    /// \returns all names; nothing: no change
    std::optional<NameBook> changed(const Log &log);

private:
    std::vector<NameFile> files_;
    std::string state_; // of the files when they were read
};

} // namespace msfrs::page
