// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The records of one direction of a TLS connection (RFC 8446, section 5.1), of which only the headers are read:
///
///     type (20..24)  version (3, x)  length (2 bytes)  length bytes, encrypted
///
/// What does not look like records is *opaque* from there on: another protocol, or a stream joined in the middle.
#ifndef MSFRS_EXCHANGE_TLS_RECORDS_H
#define MSFRS_EXCHANGE_TLS_RECORDS_H

#include <cstddef>
#include <cstdint>

namespace msfrs {

class TlsRecords {
public:
    /// What some bytes of a client contained.
    enum class Content {
        Housekeeping, ///< only HTTP/2 frames that ask for nothing: acknowledgements, window updates, pings
        Request       ///< anything else, as far as can be seen
    };

    /// Follows the next `size` bytes of the stream.
    /// \returns whether a record that is more than housekeeping began, ended or went on in them; for no bytes at all
    ///          there is nothing more
    Content follow(const char *data, size_t size);

    /// Whether the bytes so far end where a record ends; false for what is opaque.
    bool atEnd() const { return !opaque_ && left_ == 0 && headerBytes_ == 0; }
    bool opaque() const { return opaque_; }

private:
    bool beginRecord();
    bool housekeeping() const;

    unsigned char header_[5] = {};
    size_t headerBytes_ = 0;    ///< of the header of the record that begins
    size_t left_ = 0;           ///< bytes of the record that goes on
    bool opaque_ = false;
    bool small_ = true;         ///< the record that goes on is housekeeping
    bool cipherChanged_ = false;
    bool tls12_ = false;        ///< TLS 1.2, where the Finished message after ChangeCipherSpec is of type handshake
};

} // namespace msfrs

#endif
