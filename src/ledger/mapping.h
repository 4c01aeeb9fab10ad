// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A segment in shared memory, by a name that all parties know.
///
/// System V shared memory, not a file in /dev/shm, because a party must never get SIGBUS when it reads or writes a word:
///   - The kernel accounts for all of a System V segment when it is made, as for any memory of a process, or refuses to
///     make it. A file of /dev/shm takes room when a page is touched first, and SIGBUS ends whoever touches it when
///     /dev/shm is full.
///   - No call changes the size of a System V segment. Whoever may write to a file may also truncate it, and a file of
///     /dev/shm cannot be sealed: only that of memfd_create() can, which other programs cannot open by name.
/// Its key is a hash of the name. `ipcs -m` lists segments, `ipcrm -M KEY` takes one away from its key: parties that
/// have it mapped keep it. Parties must be in one IPC namespace.
#ifndef MSFRS_LEDGER_MAPPING_H
#define MSFRS_LEDGER_MAPPING_H

#include "ledger/segment.h"

#include <stdexcept>
#include <sys/types.h>

namespace msfrs::ledger {

/// what() names the segment, what is wrong with it, and what is allowed.
class MappingError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// \param name as "/squid-msfrs_ledger.shm" \returns the key of its memory
key_t KeyOf(const std::string &name);

class Mapping {
public:
    /// \returns the identifier of the segment of that name now, never one that another had before; -1: there is none
    static int Find(const std::string &name);
    /// Maps the segment of that name, which another has made.
    /// \throws MappingError also where it is no segment of this version
    static Mapping Open(const std::string &name);
    /// Makes a new, empty one, which loses its name when the object goes. \param mode as of a file, 0660
    /// \throws MappingError also where one of that name is there already
    static Mapping Create(const std::string &name, unsigned mode);
    /// Takes the name from a segment that a process which was killed has left. What is no ledger stays.
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
    bool made_ = false; ///< and to be removed at the end
};

} // namespace msfrs::ledger

#endif
