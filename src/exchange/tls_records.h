// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The records of one direction of a TLS connection (RFC 8446, section 5.1), of which only the headers are read:
///
///     type (20..24)  version (3, x)  length (2 bytes)  length bytes, encrypted
///
/// A stream that does not look like records is *opaque* from there on: another protocol, or one joined in the middle.
///
/// In TLS 1.3 all encrypted records have the type of application data. Size and order distinguish a Finished message,
/// and the *greeting* that a server sends unsolicited after the handshake: session tickets, of similar size and one
/// after the other, and the SETTINGS of HTTP/2, once. docs/design/exchanges.md has the sizes.
#pragma once

#include <cstddef>

namespace msfrs {

class TlsRecords {
public:
    static constexpr size_t Longest = 16384 + 2048; ///< RFC 5246, section 6.2.3; RFC 8446 allows less

    /// What some bytes contain, in ascending order.
    enum class Content {
        Housekeeping, ///< only HTTP/2 frames that request nothing: acknowledgements, window updates, pings
        Greeting,     ///< also a greeting; from a server, it is not an answer
        Request       ///< anything else, as far as can be seen
    };

    /// Follows the next `size` bytes of the stream.
    /// \returns the greatest content of the records that began, ended or continued in them; Housekeeping if size is 0
    Content follow(const char *data, size_t size);

    /// Whether a Finished message of TLS 1.3 was seen, and whether more than housekeeping followed it.
    bool finished() const { return finished_; }
    bool saidMore() const { return saidMore_; }

    /// The other side has finished the handshake: a greeting may follow from now on. If session tickets came earlier,
    /// there are no more.
    void otherFinished();

    /// Ends the period in which a greeting is expected.
    void endGreeting() { greeting_ = Greeting::Over; }

    /// Whether the bytes so far end where a record ends; false if the stream is opaque.
    bool atEnd() const { return !opaque_ && left_ == 0 && headerBytes_ == 0; }
    /// Bytes missing from the current record; 0 between two records, and if the stream is opaque.
    size_t left() const { return opaque_ ? 0 : left_; }

private:
    enum class Greeting { Before, Open, Over };

    bool beginRecord();
    Content content();
    bool housekeeping() const;
    bool greets();

    unsigned char header_[5] = {};
    size_t headerBytes_ = 0;    ///< bytes of header_ that have arrived
    size_t left_ = 0;           ///< bytes missing from the current record
    bool opaque_ = false;
    Content content_ = Content::Housekeeping; ///< of the current record
    bool cipherChanged_ = false;
    bool finished_ = false, saidMore_ = false;
    bool settings_ = false;     ///< whether the SETTINGS of the greeting were seen
    Greeting greeting_ = Greeting::Before;
    size_t tickets_ = 0;        ///< session tickets seen
    size_t ticket_ = 0;         ///< bytes of the first of them
    bool tls12_ = false;        ///< TLS 1.2, where the Finished message after ChangeCipherSpec is of type handshake
};

} // namespace msfrs
