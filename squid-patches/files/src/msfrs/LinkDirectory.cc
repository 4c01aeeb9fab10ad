/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "globals.h"
#include "ip/Address.h"
#include "msfrs/Classify.h"
#include "msfrs/Gateway.h"
#include "msfrs/lib/engine/request_scheduler.h"
#include "msfrs/lib/ledger/directory.h"
#include "msfrs/LinkDirectory.h"
#include "msfrs/WorkerLedger.h"

#include <cstring>
#include <memory>

namespace msfrs::squid
{

namespace
{

std::unique_ptr<ledger::Answers> TheAnswers; ///< of the first worker

ledger::IpBits
BitsOf(const Ip::Address &address)
{
    in6_addr bytes;
    address.getInAddr(bytes);
    ledger::IpBits bits;
    for (const auto byte: bytes.s6_addr) {
        bits.high = bits.high << 8 | bits.low >> 56;
        bits.low = bits.low << 8 | byte;
    }
    return bits;
}

Ip::Address
AddressOf(const ledger::IpBits &bits)
{
    in6_addr bytes;
    for (unsigned n = 0; n < sizeof(bytes.s6_addr); ++n)
        bytes.s6_addr[n] = (n < 8 ? bits.high >> (56 - 8*n) : bits.low >> (120 - 8*n)) & 0xFF;
    Ip::Address address;
    address = bytes;
    return address;
}

/// The party that asked looks up the user's quota itself, since it counts what it serves, too.
ledger::Owner
OwnerOf(const RequestConfig &config, const uint32_t cls, const std::string_view user)
{
    TheGateway()->quotas.enroll(cls, user);
    const auto &name = config.classes[cls].name;
    return {ledger::ClassKey(name), ledger::UserKey(name, user)};
}

} // namespace

void
TellClasses(const RequestConfig &config)
{
    const auto directory = DirectoryOfLink();
    if (!directory || KidIdentifier > 1)
        return;
    std::vector<ledger::ClassTold> classes;
    for (const auto &cls: config.classes)
        classes.push_back({cls.name, cls.weight});
    ledger::TellClasses(*directory, classes, config.defaultClass);
    if (!TheAnswers)
        TheAnswers = std::make_unique<ledger::Answers>(*directory);
    TheAnswers->forget();
}

void
AnswerAboutAddresses(const RequestConfig &config, const msfrs_time now)
{
    if (!TheAnswers)
        return;
    TheAnswers->answer(now, [&config](const ledger::IpBits &bits) {
        const auto flow = Classify(AddressOf(bits));
        return OwnerOf(config, flow.classIn(config), flow.name());
    });
}

void
NoteRequest(const RequestConfig &config, const Ip::Address &address, const uint32_t cls, const std::string_view user,
            const msfrs_time now)
{
    if (const auto directory = DirectoryOfLink())
        ledger::Requested(*directory, BitsOf(address), OwnerOf(config, cls, user), now);
}

} // namespace msfrs::squid
