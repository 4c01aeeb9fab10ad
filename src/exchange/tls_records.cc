// SPDX-License-Identifier: GPL-2.0-or-later
#include "exchange/tls_records.h"

#include <algorithm>
#include <iterator>

namespace msfrs {

namespace {

enum : unsigned char { ChangeCipherSpec = 20, Alert = 21, Handshake = 22, ApplicationData = 23, Heartbeat = 24 };

constexpr size_t LongestRecord = 16384 + 2048; ///< RFC 5246, section 6.2.3; RFC 8446 allows less

/// HTTP/2 frames that a client sends without wanting anything (RFC 9113), with their headers of 9 bytes: an
/// acknowledgement of SETTINGS, WINDOW_UPDATE, PING, WINDOW_UPDATE for a stream and for the connection.
constexpr size_t SmallFrames[] = {9, 13, 17, 26};
constexpr size_t Tls13Alert = 2; ///< in TLS 1.3 an alert, too, is a record of application data to whoever looks
constexpr size_t Tls13Overhead = 1 + 16; ///< type and tag (RFC 8446, section 5.2), unpadded
constexpr size_t Tls12Overhead = 8 + 16; ///< nonce and tag (RFC 5288); what CBC and ChaCha20 add is taken for a request

} // namespace

bool TlsRecords::housekeeping() const
{
    if (header_[0] == Alert)
        return true; // a client that says good-bye
    if (header_[0] != ApplicationData)
        return false;
    if (!tls12_ && left_ == Tls13Alert + Tls13Overhead)
        return true;
    const auto overhead = tls12_ ? Tls12Overhead : Tls13Overhead;
    return std::any_of(std::begin(SmallFrames), std::end(SmallFrames),
                       [&](const size_t frame) { return left_ == frame + overhead; });
}

/// \returns whether the header is one
bool TlsRecords::beginRecord()
{
    const auto type = header_[0];
    left_ = (size_t{header_[3]} << 8) | header_[4];
    headerBytes_ = 0;
    if (type < ChangeCipherSpec || type > Heartbeat || header_[1] != 3 || left_ == 0 || left_ > LongestRecord)
        return false;
    if (type == Handshake && cipherChanged_)
        tls12_ = true;
    cipherChanged_ = cipherChanged_ || type == ChangeCipherSpec;
    small_ = housekeeping();
    return true;
}

TlsRecords::Content TlsRecords::follow(const char *data, size_t size)
{
    auto content = Content::Housekeeping;
    while (size > 0 && !opaque_) {
        if (left_ > 0) {
            const auto part = std::min(size, left_);
            if (!small_)
                content = Content::Request;
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
    // A header that is not whole yet may become anything: it waits with what follows it.
    return size > 0 || opaque_ || headerBytes_ > 0 ? Content::Request : content;
}

} // namespace msfrs
