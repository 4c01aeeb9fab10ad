// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A persistent connection, of which the input is the script: who speaks next, how much and after what silence, with
/// the input itself as bytes. The states are those of the diagram in exchange.h, whatever is said.
#include "exchange/exchange.h"
#include "require.h"

#include <algorithm>

using namespace msfrs;
using State = Exchange::State;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    const auto bytes = reinterpret_cast<const char *>(data);
    Exchange exchange;
    msfrs_time now = 1'000'000'000;
    for (size_t at = 0; at + 4 <= size; at += 4) {
        const auto before = exchange.state();
        const auto from = data[at + 1] * size / 256;
        const auto said = std::min<size_t>(size - from, 1 + data[at + 2] * size_t(16));
        now += data[at + 3] * msfrs_time(data[at + 3]) * 100'000; // up to 6.5 s
        switch (data[at] % 8) {
        case 0:
        case 1:
            if (!exchange.clientSays(bytes + from, said, now)) {
                Require(exchange.state() == State::Over);
                if (data[at] & 8) { // its turn is granted
                    exchange.begin(now);
                    Require(exchange.state() == State::Asked);
                }
            }
            break;
        case 2:
        case 3:
            exchange.serverSays(bytes + from, said, now);
            Require(exchange.state() == before || exchange.state() == State::Answered);
            break;
        case 4:
            exchange.serverSays(nullptr, said, now);
            Require(exchange.recordLeft() == 0 || exchange.recordLeft() <= int64_t(TlsRecords::Longest));
            break;
        case 5:
            if (before == State::Over)
                exchange.begin(now);
            else
                exchange.resume(now);
            break;
        default:
            exchange.end();
            Require(exchange.state() == State::Over || exchange.state() == State::Uploading);
        }
        const auto silent = exchange.silentAt(data[at + 3] * msfrs_time(1'000'000));
        Require(silent <= now + 60'000'000'000);
        Require(exchange.recordLeft() >= 0 && exchange.recordLeft() <= int64_t(TlsRecords::Longest));
        Require(!exchange.mayBeComplete() || exchange.state() == State::Answered);
    }
    return 0;
}
