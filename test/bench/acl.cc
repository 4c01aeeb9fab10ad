// SPDX-License-Identifier: GPL-2.0-or-later
#include "acl.h"

#include <arpa/inet.h>
#include <rte_acl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace msfrs::bench {

using namespace edge;

namespace {

enum Field { Protocol, Source, Destination, SourcePort, DestinationPort, Fields };

/// Fields as in a packet, in network order, in groups of 4 input bytes as librte_acl requires.
struct Key {
    uint8_t protocol, unused[3];
    uint32_t source, destination;
    uint16_t sourcePort, destinationPort;
};

constexpr rte_acl_field_def Definitions[Fields] = {
    {RTE_ACL_FIELD_TYPE_BITMASK, 1, Protocol, 0, offsetof(Key, protocol)},
    {RTE_ACL_FIELD_TYPE_MASK, 4, Source, 1, offsetof(Key, source)},
    {RTE_ACL_FIELD_TYPE_MASK, 4, Destination, 2, offsetof(Key, destination)},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, SourcePort, 3, offsetof(Key, sourcePort)},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, DestinationPort, 3, offsetof(Key, destinationPort)},
};

RTE_ACL_RULE_DEF(AclRule, Fields);

uint32_t PrefixLength(const Range<Address> &r)
{
    uint32_t length = 32;
    for (uint64_t host = std::min<uint64_t>(r.last.low, LastAddress4) - r.first.low; host; host >>= 1)
        --length;
    return length;
}

/// \param error negative, or 0
void Check(const int error, const char *const what)
{
    if (error < 0)
        throw std::runtime_error(std::string("librte_acl: ") + what + ": " + rte_strerror(-error));
}

/// DPDK's environment, once for the program: no huge pages, no devices, and the processors of our affinity mask.
void Start()
{
    static const bool started = [] {
        cpu_set_t may;
        sched_getaffinity(0, sizeof(may), &may);
        std::string cpus = "--lcores=0@(";
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &may))
                cpus += (cpus.back() == '(' ? "" : ",") + std::to_string(cpu);
        }
        std::string words[] = {"bench", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=*:error",
                               "-m", "1024", cpus + ")"};
        std::vector<char *> argv;
        for (auto &w : words)
            argv.push_back(w.data());
        Check(rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0 ? -rte_errno : 0, "rte_eal_init");
        return true;
    }();
    (void)started;
}

size_t InUse()
{
    rte_malloc_socket_stats stats{};
    rte_malloc_get_socket_stats(0, &stats);
    return stats.heap_allocsz_bytes;
}

} // namespace

struct Acl::State {
    rte_acl_ctx *context = nullptr;
    size_t bytes = 0;
    std::vector<Key> keys;
    std::vector<const uint8_t *> data; ///< of each key
};

Acl::Acl(const std::vector<Match> &rules, const std::vector<FlowKey> &packets): state_(std::make_unique<State>())
{
    Start();
    const size_t before = InUse();
    const auto name = "bench" + std::to_string(rules.size()); // an existing name would return the existing context
    rte_acl_param param{};
    param.name = name.c_str();
    param.socket_id = SOCKET_ID_ANY;
    param.rule_size = RTE_ACL_RULE_SZ(Fields);
    param.max_rule_num = static_cast<uint32_t>(rules.size());
    state_->context = rte_acl_create(&param);
    Check(state_->context ? 0 : -rte_errno, "rte_acl_create");
    std::vector<AclRule> all(rules.size());
    for (size_t n = 0; n < rules.size(); ++n) {
        const auto &m = rules[n];
        auto &r = all[n];
        r = {};
        r.data.category_mask = 1;
        r.data.priority = static_cast<int32_t>(RTE_ACL_MAX_PRIORITY - n);
        r.data.userdata = static_cast<uint32_t>(n + 1);
        const bool any = m.protocol.first != m.protocol.last;
        r.field[Protocol].value.u8 = static_cast<uint8_t>(any ? 0 : m.protocol.first);
        r.field[Protocol].mask_range.u8 = any ? 0 : 0xff;
        r.field[Source].value.u32 = static_cast<uint32_t>(m.source.first.low);
        r.field[Source].mask_range.u32 = PrefixLength(m.source);
        r.field[Destination].value.u32 = static_cast<uint32_t>(m.destination.first.low);
        r.field[Destination].mask_range.u32 = PrefixLength(m.destination);
        r.field[SourcePort].value.u16 = static_cast<uint16_t>(m.sourcePort.first);
        r.field[SourcePort].mask_range.u16 = static_cast<uint16_t>(std::min(m.sourcePort.last, 65535u));
        r.field[DestinationPort].value.u16 = static_cast<uint16_t>(m.destinationPort.first);
        r.field[DestinationPort].mask_range.u16 = static_cast<uint16_t>(std::min(m.destinationPort.last, 65535u));
    }
    Check(rte_acl_add_rules(state_->context, reinterpret_cast<rte_acl_rule *>(all.data()),
                            static_cast<uint32_t>(all.size())), "rte_acl_add_rules");
    rte_acl_config config{};
    config.num_categories = 1;
    config.num_fields = Fields;
    std::copy(std::begin(Definitions), std::end(Definitions), config.defs);
    Check(rte_acl_build(state_->context, &config), "rte_acl_build");
    state_->bytes = InUse() - before;

    const auto port = [](const uint32_t p) { return htons(static_cast<uint16_t>(p == NoPort ? 0 : p)); };
    for (const auto &k : packets) {
        state_->keys.push_back({k.protocol, {}, htonl(static_cast<uint32_t>(k.source.low)),
                                htonl(static_cast<uint32_t>(k.destination.low)), port(k.sourcePort),
                                port(k.destinationPort)});
    }
    for (const auto &k : state_->keys)
        state_->data.push_back(reinterpret_cast<const uint8_t *>(&k));
}

Acl::~Acl() { rte_acl_free(state_->context); }

std::vector<AclMethod> Acl::methods() const
{
    std::vector<AclMethod> all;
    for (const auto &[name, number] : {AclMethod{"scalar", RTE_ACL_CLASSIFY_SCALAR}, {"SSE", RTE_ACL_CLASSIFY_SSE},
                                       {"AVX2", RTE_ACL_CLASSIFY_AVX2}, {"AVX-512x16", RTE_ACL_CLASSIFY_AVX512X16},
                                       {"AVX-512x32", RTE_ACL_CLASSIFY_AVX512X32}}) {
        uint32_t found;
        if (rte_acl_classify_alg(state_->context, const_cast<const uint8_t **>(state_->data.data()), &found, 1, 1,
                                 static_cast<enum rte_acl_classify_alg>(number)) == 0)
            all.push_back({name, number});
    }
    return all;
}

void Acl::find(const size_t begin, const uint32_t n, uint32_t *const found, const int method) const
{
    rte_acl_classify_alg(state_->context, const_cast<const uint8_t **>(&state_->data[begin]), found, n, 1,
                         static_cast<enum rte_acl_classify_alg>(method));
}

size_t Acl::bytes() const { return state_->bytes; }

} // namespace msfrs::bench
