// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A segment in shared memory, by a name that all parties know.
///
/// It is System V shared memory, because access to a word must never raise SIGBUS. The kernel accounts for all of such
/// a segment when it is created, and no call changes its size. A file in /dev/shm is allocated page by page, until
/// /dev/shm is full, and may be truncated; only files of memfd_create(), which have no name there, can be sealed.
/// The key is a hash of the name. `ipcs -m` lists segments. `ipcrm -M KEY` removes a segment's key; parties that have
/// it mapped keep it. All parties must be in one IPC namespace.
#pragma once

#include "ledger/segment.h"

#include <stdexcept>
#include <sys/types.h>

namespace msfrs::ledger {

/// what() has the segment's name, the error, and what is allowed.
class MappingError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// \param name as "/squid-msfrs_ledger.shm" \returns the key of its memory
key_t KeyOf(const std::string &name);

class Mapping {
public:
    /// \returns the present identifier of the segment of that name, never one of an earlier segment; -1: there is none
    static int Find(const std::string &name);
    /// Maps the segment of that name, which another process has created.
    /// \throws MappingError also if it is no segment of this version
    static Mapping Open(const std::string &name);
    /// Creates an empty segment, which loses its name with the destructor. \param mode as of a file, 0660
    /// \throws MappingError also if one of that name exists
    static Mapping Create(const std::string &name, unsigned mode);
    /// Removes the name of a segment left by a killed process. A segment that is no ledger stays.
    static void Remove(const std::string &name);

    Mapping(Mapping &&) noexcept;
    ~Mapping();
    Segment &segment() const { return *segment_; }
    int id() const { return id_; } ///< as of Find()

private:
    explicit Mapping(int id): id_(id) {}
    void attach(const std::string &name);

    Segment *segment_ = nullptr;
    int id_;
    bool made_ = false; ///< created here, so removed by the destructor
};

} // namespace msfrs::ledger
