// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/nfqueue.h"

#include "daemon/privileges.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <optional>
#include <sys/socket.h>

namespace msfrs::edge {

namespace {

constexpr size_t Attributes = 1024; ///< bytes for the attributes of a packet
constexpr size_t MostVerdictBytes = 32768; ///< after which verdicts are sent

/// "NFQUEUE 3"
std::string Named(const uint32_t number) { return "NFQUEUE " + std::to_string(number); }

using Table = std::array<const nlattr *, 32>;

/// For libmnl: enters an attribute into a Table.
int Enter(const nlattr *const attribute, void *const table)
{
    if (const auto type = mnl_attr_get_type(attribute); type < Table().size())
        (*static_cast<Table *>(table))[type] = attribute;
    return MNL_CB_OK;
}

Table Nested(const nlattr *const of)
{
    Table table{};
    mnl_attr_parse_nested(of, Enter, &table);
    return table;
}

std::optional<Address> AddressIn(const nlattr *const a)
{
    if (!a || (mnl_attr_get_payload_len(a) != 4 && mnl_attr_get_payload_len(a) != 16))
        return {};
    return AddressOf(static_cast<const uint8_t *>(mnl_attr_get_payload(a)), mnl_attr_get_payload_len(a));
}

uint32_t PortIn(const nlattr *const a)
{
    return a && mnl_attr_get_payload_len(a) == 2 ? ntohs(mnl_attr_get_u16(a)) : NoPort;
}

/// A message for the configuration of a queue.
struct ConfigMessage {
    explicit ConfigMessage(const uint32_t number): header(nfq_nlmsg_put(bytes, NFQNL_MSG_CONFIG, number)) {}
    ConfigMessage(const ConfigMessage &) = delete;
    alignas(nlmsghdr) char bytes[256];
    nlmsghdr *const header;
};

/// Sets and clears flags of a queue.
void PutFlags(nlmsghdr *const header, const uint32_t flags, const uint32_t mask)
{
    mnl_attr_put_u32(header, NFQA_CFG_FLAGS, htonl(flags));
    mnl_attr_put_u32(header, NFQA_CFG_MASK, htonl(mask));
}

/// The original tuple of a connection: with NAT, the inside addresses.
std::optional<FlowKey> OriginIn(const nlattr *const conntrack)
{
    const auto tuple = Nested(conntrack)[CTA_TUPLE_ORIG];
    if (!tuple)
        return {};
    const auto parts = Nested(tuple);
    if (!parts[CTA_TUPLE_IP] || !parts[CTA_TUPLE_PROTO])
        return {};
    const auto ip = Nested(parts[CTA_TUPLE_IP]), protocol = Nested(parts[CTA_TUPLE_PROTO]);
    const bool six = ip[CTA_IP_V6_SRC] != nullptr;
    const auto source = AddressIn(ip[six ? CTA_IP_V6_SRC : CTA_IP_V4_SRC]);
    const auto destination = AddressIn(ip[six ? CTA_IP_V6_DST : CTA_IP_V4_DST]);
    if (!source || !destination)
        return {};
    FlowKey key;
    key.family = six ? Family::V6 : Family::V4;
    key.source = *source;
    key.destination = *destination;
    if (const auto number = protocol[CTA_PROTO_NUM]; number && mnl_attr_get_payload_len(number) == 1)
        key.protocol = mnl_attr_get_u8(number);
    key.sourcePort = PortIn(protocol[CTA_PROTO_SRC_PORT]);
    key.destinationPort = PortIn(protocol[CTA_PROTO_DST_PORT]);
    return key;
}

[[noreturn]] void Explain(const uint32_t number, const int code)
{
    const std::string what = Named(number) + " cannot be bound: ";
    if (code == EPERM && HasNetAdmin())
        throw SystemError(what + "another process has it; give each its own number, or end the other "
                          "(/proc/net/netfilter/nfnetlink_queue lists them)");
    if (code == EPERM)
        throw SystemError(what + "requires CAP_NET_ADMIN; start as root, or with AmbientCapabilities=CAP_NET_ADMIN");
    if (code == EINVAL || code == EOPNOTSUPP || code == EPROTONOSUPPORT)
        throw SystemError(what + "the kernel has no queues; modprobe nfnetlink_queue, or a kernel with "
                          "CONFIG_NETFILTER_NETLINK_QUEUE (" + std::strerror(code) + ")");
    throw SystemError(what + std::strerror(code));
}

} // namespace

/// Packets that the kernel holds for us: those that wait here, and those between kernel and daemon, more than the
/// buffer can hold, so that it is full before the queue is. Packets that find the queue full are not numbered.
uint32_t NfQueue::lengthFor(const Config &config)
{
    constexpr uint32_t LeastMessage = 768; // bytes of kernel memory; the kernel grants twice the buffer
    return config.limit + std::max(2048u, 2 * (config.queue.buffer / LeastMessage));
}

NfQueue::NfQueue(const Config &config, const uint32_t index, const uint32_t copy):
    number_(config.queue.number + index),
    socket_(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC | SOCK_NONBLOCK), mnl_socket_close),
    failOpen_(config.queue.failOpen)
{
    if (!socket_ || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0)
        Explain(number_, errno);
    const size_t slot = NLMSG_ALIGN(copy + Attributes); // each is aligned like the first
    bytes_.resize(Batch * slot);
    for (size_t n = 0; n < Batch; ++n) {
        parts_[n] = {&bytes_[n * slot], slot};
        messages_[n].msg_hdr = {nullptr, 0, &parts_[n], 1, nullptr, 0, 0};
    }
    arrivals_.reserve(Batch);
    verdicts_.reserve(2 * MostVerdictBytes);
    configure(config, copy);
}

int NfQueue::fd() const { return mnl_socket_get_fd(socket_.get()); }

void NfQueue::configure(const Config &config, const uint32_t copy)
{
    const int bytes = static_cast<int>(config.queue.buffer);
    if (setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0 &&
        setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0)
        Fail(Named(number_) + ": no buffer of " + std::to_string(bytes) + " bytes");
    const ConfigMessage bind(number_);
    nfq_nlmsg_cfg_put_cmd(bind.header, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
    nfq_nlmsg_cfg_put_params(bind.header, NFQNL_COPY_PACKET, static_cast<int>(copy));
    nfq_nlmsg_cfg_put_qmaxlen(bind.header, lengthFor(config));
    const uint32_t flags = (config.gso() ? NFQA_CFG_F_GSO : 0u) | (failOpen_ ? NFQA_CFG_F_FAIL_OPEN : 0u);
    PutFlags(bind.header, flags, NFQA_CFG_F_GSO | NFQA_CFG_F_FAIL_OPEN);
    if (const int code = command(bind.header))
        Explain(number_, code);
    if (!config.queue.conntrack)
        return;
    const ConfigMessage conntrack(number_);
    PutFlags(conntrack.header, NFQA_CFG_F_CONNTRACK, NFQA_CFG_F_CONNTRACK);
    conntrack_ = command(conntrack.header) == 0; // not every kernel supports it
}

int NfQueue::command(nlmsghdr *const header)
{
    header->nlmsg_flags |= NLM_F_ACK;
    header->nlmsg_seq = ++sequence_;
    answer_ = -1;
    if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0)
        return errno;
    // The kernel has answered when sendto() returns, but packets may precede the answer.
    for (bool more = true; answer_ < 0 && more;) {
        for (const auto &a : read(more)) {
            give(a.id, true, {});
            ++counts_.unscheduled;
        }
        flush();
    }
    return answer_ < 0 ? EPROTO : answer_;
}

const std::vector<Arrival> &NfQueue::read(bool &more)
{
    arrivals_.clear();
    const int got = recvmmsg(fd(), messages_, Batch, MSG_DONTWAIT, nullptr);
    more = got == static_cast<int>(Batch);
    if (got < 0) {
        if (errno == ENOBUFS) { // reported once for any number of packets; reading continues
            ++counts_.overruns;
            more = true;
        } else if (errno == EINTR) {
            more = true;
        } else if (errno != EAGAIN) {
            Fail(Named(number_) + " cannot be read");
        }
        return arrivals_;
    }
    for (int n = 0; n < got; ++n)
        parse(static_cast<const char *>(parts_[n].iov_base), messages_[n].msg_len);
    return arrivals_;
}

void NfQueue::parse(const char *const bytes, const size_t length)
{
    int left = static_cast<int>(length);
    for (auto *header = reinterpret_cast<const nlmsghdr *>(bytes); mnl_nlmsg_ok(header, left);
         header = mnl_nlmsg_next(header, &left)) {
        if (header->nlmsg_type == NLMSG_ERROR)
            parseError(header);
        else if (header->nlmsg_type == (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
            parsePacket(header);
    }
}

void NfQueue::parseError(const void *const message)
{
    const auto *const header = static_cast<const nlmsghdr *>(message);
    if (mnl_nlmsg_get_payload_len(header) < sizeof(nlmsgerr))
        return;
    const auto *const error = static_cast<const nlmsgerr *>(mnl_nlmsg_get_payload(header));
    if (error->msg.nlmsg_seq == sequence_ && error->msg.nlmsg_type == (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG))
        answer_ = -error->error;
    else if (error->error == -ENOENT)
        ++counts_.gone; // its interface went down, and its packets with it
    else
        throw SystemError(Named(number_) + ": a verdict was refused: " + std::strerror(-error->error));
}

void NfQueue::parsePacket(const void *const message)
{
    const auto *const header = static_cast<const nlmsghdr *>(message);
    static_assert(NFQA_MAX < std::tuple_size<Table>::value);
    Table attributes{};
    mnl_attr_parse(header, sizeof(nfgenmsg), Enter, &attributes);
    const auto *const packet = attributes[NFQA_PACKET_HDR];
    if (!packet || mnl_attr_get_payload_len(packet) < sizeof(nfqnl_msg_packet_hdr) || arrivals_.size() == Batch)
        return;
    const auto number = [&](const int type) {
        const auto *const a = attributes[type];
        return a && mnl_attr_get_payload_len(a) == 4 ? ntohl(mnl_attr_get_u32(a)) : 0u;
    };
    Arrival a{};
    a.id = ntohl(static_cast<const nfqnl_msg_packet_hdr *>(mnl_attr_get_payload(packet))->packet_id);
    auto &missed = failOpen_ ? counts_.unscheduled : counts_.userDropped;
    missed += static_cast<uint32_t>(a.id - arrived_ - 1); // numbers ascend and wrap around
    arrived_ = a.id;
    a.mark = number(NFQA_MARK);
    if (const auto *const payload = attributes[NFQA_PAYLOAD]) {
        a.data = static_cast<uint8_t *>(mnl_attr_get_payload(payload));
        a.captured = mnl_attr_get_payload_len(payload);
    }
    a.length = std::max(a.captured, number(NFQA_CAP_LEN));
    if (const auto *const conntrack = attributes[NFQA_CT]) {
        if (const auto origin = OriginIn(conntrack)) {
            origins_[arrivals_.size()] = *origin;
            a.origin = &origins_[arrivals_.size()];
        }
    }
    arrivals_.push_back(a);
    ++held_;
}

void NfQueue::give(const uint32_t id, const bool pass, const std::optional<uint32_t> mark)
{
    // Numbers ascend and wrap around.
    alike_ = pass && (verdicts_.empty() || (alike_ && mark == mark_ && static_cast<int32_t>(id - latest_) > 0));
    latest_ = id;
    mark_ = mark;
    held_ -= held_ > 0;
    put(NFQNL_MSG_VERDICT, id, pass, mark);
    if (verdicts_.size() >= MostVerdictBytes)
        flush();
}

void NfQueue::put(const int type, const uint32_t id, const bool pass, const std::optional<uint32_t> mark)
{
    alignas(nlmsghdr) char message[128];
    auto *const header = nfq_nlmsg_put(message, type, number_);
    nfq_nlmsg_verdict_put(header, static_cast<int>(id), pass ? NF_ACCEPT : NF_DROP);
    if (mark)
        nfq_nlmsg_verdict_put_mark(header, *mark);
    verdicts_.insert(verdicts_.end(), message, message + header->nlmsg_len); // a multiple of 4, as the next one needs
}

void NfQueue::flush()
{
    // If no packet waits, one batch verdict replaces all: it applies to every packet up to its number, in their order.
    if (alike_ && held_ == 0 && !verdicts_.empty()) {
        verdicts_.clear();
        put(NFQNL_MSG_VERDICT_BATCH, latest_, true, mark_);
    }
    while (!verdicts_.empty()) {
        if (mnl_socket_sendto(socket_.get(), verdicts_.data(), verdicts_.size()) >= 0) {
            verdicts_.clear();
        } else if (errno == ENOBUFS || errno == ENOMEM || errno == EAGAIN) {
            return; // sent with the next ones
        } else if (errno != EINTR) {
            Fail(Named(number_) + ": verdicts cannot be sent");
        }
    }
}

void NfQueue::setLength(const uint32_t length)
{
    const ConfigMessage message(number_);
    nfq_nlmsg_cfg_put_qmaxlen(message.header, length);
    mnl_socket_sendto(socket_.get(), message.header, message.header->nlmsg_len);
}

void NfQueue::passOn()
{
    const ConfigMessage message(number_);
    PutFlags(message.header, NFQA_CFG_F_FAIL_OPEN, NFQA_CFG_F_FAIL_OPEN);
    mnl_socket_sendto(socket_.get(), message.header, message.header->nlmsg_len);
    setLength(0);
}

} // namespace msfrs::edge
