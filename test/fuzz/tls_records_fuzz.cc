// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One direction of a connection, in pieces of any size: TLS records or anything else. However it is cut, the same is
/// seen in it: where records end, whether the handshake is over, and no less content.
#include "exchange/tls_records.h"
#include "require.h"

#include <algorithm>
#include <cstdint>

using msfrs::TlsRecords;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    if (size < 2)
        return 0;
    const auto stream = reinterpret_cast<const char *>(data) + 2;
    const auto length = size - 2;
    const size_t step = data[0] % 64 + 1;
    TlsRecords whole, pieces;
    if (data[1] & 1) {
        whole.otherFinished();
        pieces.otherFinished();
    }
    if (data[1] & 2) {
        whole.endGreeting();
        pieces.endGreeting();
    }
    const auto content = whole.follow(stream, length);
    auto greatest = pieces.follow(stream, 0);
    Require(greatest == TlsRecords::Content::Housekeeping);
    for (size_t at = 0; at < length; at += step) {
        greatest = std::max(greatest, pieces.follow(stream + at, std::min(step, length - at)));
        Require(pieces.left() <= TlsRecords::Longest);
    }
    Require(content <= greatest); // a header that is cut may become that of any record
    Require(whole.left() == pieces.left() && whole.atEnd() == pieces.atEnd());
    Require(whole.finished() == pieces.finished() && whole.saidMore() == pieces.saidMore());
    Require(!whole.atEnd() || whole.left() == 0);
    return 0;
}
