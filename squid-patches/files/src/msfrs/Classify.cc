/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "AccessLogEntry.h"
#include "acl/FilledChecklist.h"
#include "debug/Stream.h"
#include "HttpRequest.h"
#include "ip/Address.h"
#include "msfrs/Classify.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/Gateway.h"
#include "msfrs/lib/engine/request_scheduler.h"
#include "sbuf/Stream.h"
#include "SquidConfig.h"
#if USE_AUTH
#include "auth/UserRequest.h"
#endif

namespace msfrs::squid
{

namespace
{

const SBuf::size_type LongestKey = 128;

/// the address, or the IPv6 network of prefix6 bits it is in; IPv4-mapped addresses count as IPv4
SBuf
SourceKey(Ip::Address address, const unsigned prefix6)
{
    if (address.isAnyAddr() || address.isNoAddr())
        return SBuf("internal"); // a request that Squid makes for itself

    char buf[MAX_IPSTRLEN];
    if (address.isIPv4() || prefix6 >= 128)
        return SBuf(address.toStr(buf, sizeof(buf)));

    in6_addr bits;
    address.getInAddr(bits);
    for (unsigned i = 0; i < sizeof(bits.s6_addr); ++i) {
        const auto kept = prefix6 > 8*i ? std::min(prefix6 - 8*i, 8U) : 0;
        bits.s6_addr[i] &= 0xFF << (8 - kept);
    }
    address = bits;
    return ToSBuf(address.toStr(buf, sizeof(buf)), '/', prefix6);
}

/// a proxy_auth user, or the user=value of an external ACL helper (the only possible login of intercepted traffic);
/// empty if there is none
SBuf
LoginKey(const HttpRequest &request)
{
    SBuf name;
#if USE_AUTH
    if (request.auth_user_request && request.auth_user_request->username())
        name = SBuf(request.auth_user_request->username());
    else
#endif
        if (request.extacl_user.size())
            name = SBuf(request.extacl_user.rawBuf(), request.extacl_user.size());
    if (name.isEmpty())
        return name;
    // the prefix keeps names apart from addresses, which identify users without a name
    return ToSBuf("login=", name).substr(0, LongestKey);
}

/// empty if the hardware address is unknown
SBuf
MacKey(const Ip::Address &address)
{
    in6_addr bits;
    address.getInAddr(bits); // an IPv4 address as an IPv4-mapped one
    HostAddress host;
    std::copy_n(bits.s6_addr, host.size(), host.begin());
    const auto mac = TheGateway()->hardwareAddressOf(host);
    return mac ? ToSBuf("mac=", TextOf(*mac)) : SBuf();
}

/// leading bits of an IPv6 address that identify a user
unsigned
PrefixOfUsers()
{
    return Config.msfrs.user ? Config.msfrs.user->prefix6 : UserKey::NetworkBits;
}

/// the user of an address
SBuf
User(const Ip::Address &address)
{
    SBuf key;
    if (Config.msfrs.user && Config.msfrs.user->kind == UserKey::Mac)
        key = MacKey(address);
    return key.isEmpty() ? SourceKey(address, PrefixOfUsers()) : key;
}

SBuf
User(const HttpRequest &request)
{
    SBuf key;
    if (Config.msfrs.user && Config.msfrs.user->kind == UserKey::Login)
        key = LoginKey(request);
    return key.isEmpty() ? User(ClientAddress(request)) : key;
}

uint32_t
DefaultClass()
{
    const auto &classes = *Config.msfrs.classes;
    for (size_t i = 0; i < classes.size(); ++i) {
        if (classes[i]->isDefault())
            return i;
    }
    return 0; // not reached: Configuration::check() requires a default
}

/// the result of msfrs_access for a transaction
struct Decision {
    uint32_t cls;
    bool sure; ///< no line before the deciding one had an ACL without an answer
};

Decision
ClassOf(ACLFilledChecklist &ch)
{
    auto sure = true;
    if (!Config.msfrs.access)
        return {DefaultClass(), sure};

    // Classes excluded for this request. The list is short: a set would cost more than it saves.
    std::vector<uint32_t> denied;
    for (const auto line: *Config.msfrs.access) {
        if (std::find(denied.begin(), denied.end(), line->cls) != denied.end())
            continue;
        if (line->needsRequest() && !ch.hasRequest()) // else Squid would complain, for every address
            continue;
        const auto answer = ch.fastCheck(line->acls);
        sure = sure && !answer.conflicted();
        if (!answer.allowed())
            continue;
        if (line->allow)
            return {line->cls, sure};
        denied.push_back(line->cls);
    }
    return {DefaultClass(), sure};
}

/// gives ACLs the data of a request
void
Fill(ACLFilledChecklist &ch, HttpRequest * const request, const AccessLogEntryPointer &al)
{
#if __has_include("acl/Node.h") // Squid 7
    ch.updateAle(al);
#else
    ch.al = al;
#endif
    ch.syncAle(request, nullptr);
}

Flow
Logged(Flow flow)
{
    debugs(97, 5, "class " << (*Config.msfrs.classes)[flow.cls]->name << " user " << flow.user);
    return flow;
}

} // namespace

const Ip::Address &
ClientAddress(const HttpRequest &request)
{
#if FOLLOW_X_FORWARDED_FOR
    if (Config.onoff.acl_uses_indirect_client)
        return request.indirect_client_addr;
#endif
    return request.client_addr;
}

uint32_t
Flow::classIn(const RequestConfig &config) const
{
    return cls < config.classes.size() ? cls : config.defaultClass;
}

Flow
Classify(const Ip::Address &address)
{
    ACLFilledChecklist ch(nullptr, nullptr);
    ch.src_addr = address;
    return Logged({ClassOf(ch).cls, User(address)});
}

Flow
Classify(HttpRequest * const request, const AccessLogEntryPointer &al)
{
    assert(request);
    ACLFilledChecklist ch(nullptr, request);
    Fill(ch, request, al);
    const auto cls = ClassOf(ch).cls; // first: an ACL may identify the user
    return Logged({cls, User(*request)});
}

std::optional<uint32_t>
ClassifyAgain(HttpRequest * const request, const AccessLogEntryPointer &al)
{
    assert(request);
    ACLFilledChecklist ch(nullptr, request);
    Fill(ch, request, al);
    const auto decision = ClassOf(ch);
    return decision.sure ? std::make_optional(decision.cls) : std::nullopt;
}

} // namespace msfrs::squid
