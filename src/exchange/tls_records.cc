// SPDX-License-Identifier: GPL-2.0-or-later
#include "exchange/tls_records.h"

#include <algorithm>
#include <iterator>

namespace msfrs {

namespace {

enum : unsigned char { ChangeCipherSpec = 20, Alert = 21, Handshake = 22, ApplicationData = 23, Heartbeat = 24 };

/// HTTP/2 frames of a client that request nothing (RFC 9113), with their headers of 9 bytes: an
/// acknowledgement of SETTINGS, WINDOW_UPDATE, PING, WINDOW_UPDATE for a stream and for the connection.
constexpr size_t SmallFrames[] = {9, 13, 17, 26};
constexpr size_t Tls13Alert = 2; ///< in TLS 1.3 an alert, too, looks like a record of application data
constexpr size_t Tls13Overhead = 1 + 16; ///< type and tag (RFC 8446, section 5.2), unpadded
constexpr size_t Tls12Overhead = 8 + 16; ///< nonce and tag (RFC 5288); CBC and ChaCha20 records count as requests

/// The longest Finished of TLS 1.2: CBC with SHA-384, nonce and padding included. In TLS 1.3, too, a handshake message
/// may follow ChangeCipherSpec, when the server has asked for another ClientHello; hellos are longer.
constexpr size_t Tls12Finished = 16 + 16 + 48 + 16;
/// A Finished of TLS 1.3 is a hash, SHA-256 or SHA-384, behind a header of 4 bytes.
constexpr size_t Tls13Finished[] = {4 + 32 + Tls13Overhead, 4 + 48 + Tls13Overhead};

/// Seen with common servers: one ticket of 139 bytes, two of 250, of 618 each with a client's certificate in them, two
/// in one record. They may differ by a block of the cipher that encrypts them.
constexpr size_t MostTickets = 4, LongestTicket = 1024, TicketsDiffer = 16;
/// SETTINGS of up to six values and a WINDOW_UPDATE.
constexpr size_t LongestSettings = 9 + 6 * 6 + 13 + Tls13Overhead;

} // namespace

bool TlsRecords::housekeeping() const
{
    if (header_[0] == Alert)
        return true; // the client closes the connection
    if (header_[0] != ApplicationData)
        return false;
    if (!tls12_ && left_ == Tls13Alert + Tls13Overhead)
        return true;
    const auto overhead = tls12_ ? Tls12Overhead : Tls13Overhead;
    return std::any_of(std::begin(SmallFrames), std::end(SmallFrames),
                       [&](const size_t frame) { return left_ == frame + overhead; });
}

void TlsRecords::otherFinished()
{
    if (greeting_ == Greeting::Before)
        greeting_ = Greeting::Open;
    if (tickets_ > 0)
        tickets_ = MostTickets;
}

/// \returns whether the record that begins is part of the greeting
bool TlsRecords::greets()
{
    if (greeting_ != Greeting::Open || header_[0] != ApplicationData)
        return false;
    if (left_ <= LongestSettings && !settings_) {
        settings_ = true;
        return true;
    }
    if (left_ > LongestSettings && left_ <= LongestTicket && tickets_ < MostTickets) {
        if (tickets_ == 0)
            ticket_ = left_;
        ++tickets_;
        if (left_ + TicketsDiffer >= ticket_ && left_ <= ticket_ + TicketsDiffer)
            return true;
    }
    greeting_ = Greeting::Over;
    return false;
}

/// \returns the content of the record that begins
TlsRecords::Content TlsRecords::content()
{
    if (housekeeping())
        return Content::Housekeeping;
    const auto end = std::end(Tls13Finished);
    if (header_[0] == ApplicationData && !tls12_ && !finished_ &&
            std::find(std::begin(Tls13Finished), end, left_) != end) {
        finished_ = true;
        if (greeting_ == Greeting::Before)
            greeting_ = Greeting::Open;
        return Content::Request;
    }
    saidMore_ = finished_;
    return greets() ? Content::Greeting : Content::Request;
}

/// \returns whether the header is valid
bool TlsRecords::beginRecord()
{
    const auto type = header_[0];
    left_ = (size_t{header_[3]} << 8) | header_[4];
    headerBytes_ = 0;
    if (type < ChangeCipherSpec || type > Heartbeat || header_[1] != 3 || left_ == 0 || left_ > Longest)
        return false;
    if (type == Handshake && cipherChanged_ && left_ <= Tls12Finished)
        tls12_ = true;
    cipherChanged_ = cipherChanged_ || type == ChangeCipherSpec;
    content_ = content();
    return true;
}

TlsRecords::Content TlsRecords::follow(const char *data, size_t size)
{
    auto most = Content::Housekeeping;
    while (size > 0 && !opaque_) {
        if (left_ > 0) {
            const auto part = std::min(size, left_);
            most = std::max(most, content_);
            left_ -= part;
            data += part;
            size -= part;
            continue;
        }
        header_[headerBytes_++] = static_cast<unsigned char>(*data++);
        --size;
        if (headerBytes_ == sizeof(header_) && !beginRecord())
            opaque_ = true;
    }
    // An incomplete header may become any record: it waits with the bytes after it.
    return size > 0 || opaque_ || headerBytes_ > 0 ? Content::Request : most;
}

} // namespace msfrs
