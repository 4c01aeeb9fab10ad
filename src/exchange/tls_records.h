// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The records of one direction of a TLS connection (RFC 8446, section 5.1), of which only the headers are read:
///
///     type (20..24)  version (3, x)  length (2 bytes)  length bytes, encrypted
///
/// What does not look like records is *opaque* from there on: another protocol, or a stream joined in the middle.
///
/// In TLS 1.3 all that is encrypted looks like application data. What is told apart is told by size and order: a
/// Finished message, and the *greeting* that a server sends by itself behind the handshake: session tickets, of like
/// size and one after the other, and the SETTINGS of HTTP/2, once.
#ifndef MSFRS_EXCHANGE_TLS_RECORDS_H
#define MSFRS_EXCHANGE_TLS_RECORDS_H

#include <cstddef>
#include <cstdint>

namespace msfrs {

class TlsRecords {
public:
    /// What some bytes contained, the least first.
    enum class Content {
        Housekeeping, ///< only HTTP/2 frames that ask for nothing: acknowledgements, window updates, pings
        Greeting,     ///< also what is no answer if a server says it
        Request       ///< anything else, as far as can be seen
    };

    /// Follows the next `size` bytes of the stream.
    /// \returns the most of the records that began, ended or went on in them; Housekeeping for no bytes at all
    Content follow(const char *data, size_t size);

    /// Whether a Finished message of TLS 1.3 has gone by, and something after it that is more than housekeeping.
    bool finished() const { return finished_; }
    bool saidMore() const { return saidMore_; }

    /// The other side has finished the handshake: what greets now is the greeting, and session tickets that came before
    /// were all of them.
    void otherFinished();

    /// The greeting is over: it would have come by now.
    void endGreeting() { greeting_ = Greeting::Over; }

    /// Whether the bytes so far end where a record ends; false for what is opaque.
    bool atEnd() const { return !opaque_ && left_ == 0 && headerBytes_ == 0; }
    bool opaque() const { return opaque_; }

private:
    enum class Greeting { Before, Open, Over };

    bool beginRecord();
    Content content();
    bool housekeeping() const;
    bool greets();

    unsigned char header_[5] = {};
    size_t headerBytes_ = 0;    ///< of the header of the record that begins
    size_t left_ = 0;           ///< bytes of the record that goes on
    bool opaque_ = false;
    Content content_ = Content::Housekeeping; ///< of the record that goes on
    bool cipherChanged_ = false;
    bool finished_ = false, saidMore_ = false;
    bool settings_ = false;     ///< those of the greeting have been seen
    Greeting greeting_ = Greeting::Before;
    size_t tickets_ = 0;        ///< how many were seen
    size_t ticket_ = 0;         ///< size of the first of them
    bool tls12_ = false;        ///< TLS 1.2, where the Finished message after ChangeCipherSpec is of type handshake
};

} // namespace msfrs

#endif
