// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/connection.h"

#include <algorithm>

namespace msfrs::sim::access {

Connection::Connection(Clock &clock, Link &link, const uint32_t server, const ServerPath &path, const int64_t buffer):
    boundedBuffer(buffer), clock_(clock), link_(link), server_(server), path_(path),
    receiver_(clock,
              [this](const Ack &ack) { clock_.after(path_.rtt / 2, [this, ack] { sender_->acknowledged(ack); }); },
              [this] {
                  if (onReadable)
                      onReadable();
              },
              buffer),
    again_(clock, [this] { answerHandshake(); })
{
}

void Connection::open()
{
    opened_ = clock_.now();
    clock_.after(path_.rtt / 2, [this] { answerHandshake(); });
}

void Connection::answerHandshake()
{
    if (established_)
        return;
    again_.set(clock_.now() + (Second << std::min(tries_++, 6)));
    synAcked_ = clock_.now();
    comeDown([this] {
        link_.send(HandshakeFrame, [this] {
            if (established_)
                return;
            established_ = true;
            again_.stop();
            if (tries_ == 1)
                sample(clock_.now() - opened_);
            onOpen();
        });
    });
}

void Connection::say(std::function<void(Sender &)> heard)
{
    asked_ = lastAsked_ = clock_.now();
    clock_.after(path_.rtt / 2, [this, heard = std::move(heard), asked = asked_] {
        if (!sender_)
            sender_.emplace(clock_, [this](const Segment &s) { carry(s); }, receiver_.edge(),
                            clock_.now() - synAcked_);
        sender_->heard(asked);
        heard(*sender_);
    });
}

void Connection::request(const int64_t body, const msfrs_time thinks)
{
    say([this, body, thinks](auto &sender) {
        if (thinks == 0)
            sender.write(ResponseHeader + body);
        else
            clock_.after(thinks, [body, &sender] { sender.write(ResponseHeader + body); });
    });
}

/// Carries data from the server to the provider's queue, in the order of sending.
void Connection::comeDown(Clock::Event event)
{
    comes_ = std::max(comes_, clock_.now() + path_.down(clock_.now()));
    clock_.at(comes_, std::move(event));
}

void Connection::carry(const Segment &segment)
{
    comeDown([this, segment] {
        link_.send(segment.bytes.end - segment.bytes.begin + Headers, [this, segment] {
            if (asked_ >= 0 && segment.echo >= asked_) { // the first of an answer; a duplicate is of the one before
                sample(clock_.now() - asked_);
                asked_ = -1;
            }
            receiver_.arrived(segment);
        });
    });
}

void Connection::sample(const msfrs_time rtt)
{
    srtt_ = srtt_ ? srtt_ + (rtt - srtt_) / 8 : rtt;
    least_ = least_ ? std::min(least_, rtt) : rtt;
}

msfrs_time Connection::latest() const
{
    constexpr msfrs_time Stale = 1'000'000'000; // as in Squid's Path()
    if (receiver_.roundTrip() > 0 && clock_.now() - lastAsked_ > Stale)
        return receiver_.roundTrip();
    return receiver_.roundTrip() > 0 && srtt_ > 0 ? std::min(receiver_.roundTrip(), srtt_) : srtt_;
}

} // namespace msfrs::sim::access
