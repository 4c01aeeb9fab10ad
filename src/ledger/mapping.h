// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A segment in POSIX shared memory, by a name that all parties know.
#ifndef MSFRS_LEDGER_MAPPING_H
#define MSFRS_LEDGER_MAPPING_H

#include "ledger/segment.h"

#include <stdexcept>

namespace msfrs::ledger {

/// what() names the segment, what is wrong with it, and what is allowed.
class MappingError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class Mapping {
public:
    /// Maps the segment of that name, which another has made. \param name as in shm_open(): "/name"
    /// \throws MappingError also where it is no segment of this version
    static Mapping Open(const std::string &name);
    /// Makes a new, empty one, which goes when the object does. \param mode of its file, as 0660
    /// \throws MappingError also where one of that name is there already
    static Mapping Create(const std::string &name, unsigned mode);

    Mapping(Mapping &&) noexcept;
    ~Mapping();
    Segment &segment() const { return *segment_; }

private:
    Mapping() = default;

    Segment *segment_ = nullptr;
    std::string remove_; ///< name to remove at the end; empty: none
};

} // namespace msfrs::ledger

#endif
