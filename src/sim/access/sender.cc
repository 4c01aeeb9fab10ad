// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/sender.h"

#include "sim/link/link.h"

#include <algorithm>
#include <cmath>

namespace msfrs::sim::access {

constexpr msfrs_time LeastTimeout = 200 * Ms, MostTimeout = 120 * Second, DelayedAck = 200 * Ms;
constexpr int Duplicates = 3; ///< later segments that arrive before a missing one counts as lost at once

Sender::Sender(Clock &clock, std::function<void(const Segment &)> send, const int64_t edge, const msfrs_time rtt):
    clock_(clock), send_(std::move(send)), edge_(edge), timer_(clock, [this] { expired(); }),
    reorder_(clock, [this] { detectLoss(); pump(); })
{
    measure(rtt);
    lastSent_ = clock.now();
}

/// tcp_sndbuf_expand(): two of the largest congestion window so far, in the memory that full segments take.
int64_t Sender::room() const
{
    constexpr double Windows = 2, SegmentMemory = 4352, Most = 4 << 20; // bytes; the last: net.ipv4.tcp_wmem
    return std::lround(std::min(Windows * widest_ * SegmentMemory, Most));
}

void Sender::write(const int64_t bytes)
{
    const auto idle = clock_.now() - lastSent_;
    if (sent_.empty() && idle > timeout()) // RFC 2861
        cubic_.restart(static_cast<int>(std::min<msfrs_time>(idle / timeout(), 30)));
    written_ += bytes;
    pump();
}

msfrs_time Sender::timeout() const
{
    const auto plain = srtt_ + std::max(LeastTimeout, 4 * rttVar_);
    return std::min(plain << std::min(backoff_, 10), MostTimeout);
}

void Sender::measure(const msfrs_time rtt)
{
    if (srtt_ == 0) {
        srtt_ = rtt;
        rttVar_ = rtt / 2;
        leastRtt_ = rtt;
        return;
    }
    const auto error = std::abs(rtt - srtt_);
    rttVar_ += (error - rttVar_) / 4;
    srtt_ += (rtt - srtt_) / 8;
    leastRtt_ = std::min(leastRtt_, rtt);
}

/// Number of segments that may be sent now.
double Sender::quota() const
{
    if (phase_ != Phase::Recovery)
        return cubic_.window() - inFlight_;
    const double threshold = cubic_.threshold();
    if (inFlight_ > threshold)
        return std::ceil(delivered_ * threshold / prior_) - out_;
    return std::min(threshold - inFlight_, std::max(delivered_ - out_, 0.0) + 1);
}

void Sender::hand(Sent &s)
{
    s.at = lastSent_ = clock_.now();
    s.order = ++order_;
    ++inFlight_;
    ++out_;
    mostInFlight_ = std::max(mostInFlight_, inFlight_);
    send_({s.bytes, s.bytes.end == written_, echo_});
}

bool Sender::sendNew(const bool probe)
{
    const auto room = edge_ - next_, rest = written_ - next_;
    const auto bytes = std::min(Mss, rest);
    if (bytes <= 0 || room <= 0 || (room < bytes && !probe))
        return false;
    sent_.push_back({{next_, next_ + std::min(bytes, room)}, 0, 0});
    next_ = sent_.back().bytes.end;
    hand(sent_.back());
    return true;
}

void Sender::resend()
{
    for (auto &s : sent_) {
        if (lostCount_ == 0 || quota() < 1)
            break;
        if (!s.lost)
            continue;
        s.lost = false;
        s.again = true;
        --lostCount_;
        ++retransmitted_;
        hand(s);
    }
}

void Sender::pump()
{
    resend();
    limited_ = false;
    while (lostCount_ == 0 && next_ < written_) {
        if (quota() < 1) {
            limited_ = true;
            break;
        }
        if (!sendNew())
            break;
    }
    arm();
}

void Sender::acknowledged(const Ack &ack)
{
    const auto now = clock_.now();
    echo_ = std::max(echo_, ack.sent);
    edge_ = std::max(edge_, ack.edge);
    double arrived = 0;
    msfrs_time oldest = -1, newest = -1;
    const auto arrive = [&](Sent &s) {
        s.arrived = true;
        ++arrived;
        latest_ = std::max(latest_, s.order);
        if (!s.lost)
            --inFlight_;
        else
            --lostCount_;
        s.lost = false;
        if (s.again)
            return;
        oldest = std::max(oldest, now - s.at);
        newest = newest < 0 ? now - s.at : std::min(newest, now - s.at);
    };
    for (const auto &range : ack.beyond) {
        for (auto &s : sent_) {
            if (!s.arrived && s.bytes.begin >= range.begin && s.bytes.end <= range.end) {
                arrive(s);
                ++arrivedCount_;
            }
        }
    }
    while (!sent_.empty() && sent_.front().bytes.end <= ack.next) {
        if (sent_.front().arrived)
            --arrivedCount_;
        else
            arrive(sent_.front());
        sent_.pop_front();
    }
    if (ack.next > acked_ || arrived > 0)
        backoff_ = 0;
    acked_ = std::max(acked_, ack.next);
    if (oldest >= 0)
        measure(std::max<msfrs_time>(oldest, 1));
    const bool round = acked_ >= roundEnd_;
    if (round && arrived > 0) {
        roundEnd_ = next_;
        mostBefore_ = mostInFlight_;
        mostInFlight_ = inFlight_;
    }
    delivered_ += arrived;

    if (phase_ != Phase::Open && acked_ >= recoveryPoint_) {
        if (phase_ == Phase::Recovery)
            cubic_.recovered();
        phase_ = Phase::Open;
    }
    const bool limited = limited_ || (cubic_.slowStart() &&
                                      cubic_.window() < 2 * std::max(mostInFlight_, mostBefore_));
    if (arrived > 0 && phase_ != Phase::Recovery && limited)
        cubic_.acknowledged(arrived, newest > 0 ? newest : 0, round, now);
    detectLoss();
    pump();
    widest_ = std::max(widest_, cubic_.window());
    if (onAcknowledged)
        onAcknowledged();
}

/// RACK: a segment sent before one that has arrived is lost, as packets do not overtake each other.
void Sender::detectLoss()
{
    reorder_.stop();
    const auto now = clock_.now();
    const bool sure = phase_ != Phase::Open || arrivedCount_ >= Duplicates;
    bool any = false;
    for (auto &s : sent_) {
        if (s.arrived || s.lost || s.order >= latest_)
            continue;
        const auto due = s.at + srtt_ + leastRtt_ / 4;
        if (!sure && now < due) {
            if (!reorder_.running())
                reorder_.set(due);
            continue;
        }
        s.lost = true;
        --inFlight_;
        ++lostCount_;
        any = true;
    }
    if (!any || phase_ != Phase::Open)
        return;
    phase_ = Phase::Recovery;
    recoveryPoint_ = next_;
    prior_ = cubic_.window();
    delivered_ = out_ = 0;
    cubic_.lost();
}

void Sender::arm()
{
    const auto now = clock_.now();
    probing_ = false;
    if (inFlight_ == 0 && lostCount_ == 0) {
        if (next_ < written_) // the receiver's window is shut
            timer_.set(now + timeout());
        else
            timer_.stop();
        return;
    }
    if (phase_ == Phase::Open && arrivedCount_ == 0 && backoff_ == 0) {
        probing_ = true;
        timer_.set(now + std::min(2 * srtt_ + (inFlight_ == 1 ? DelayedAck : 2 * Ms), timeout()));
        return;
    }
    timer_.set(now + timeout());
}

void Sender::expired()
{
    const auto now = clock_.now();
    if (inFlight_ == 0 && lostCount_ == 0) { // a window probe, never lost here: as much as the receiver has room for
        backoff_ = std::min(backoff_ + 1, 10);
        if (!sendNew(true))
            send_({{next_, next_}, true, echo_});
        timer_.set(now + timeout());
        return;
    }
    if (probing_) {
        probing_ = false;
        if (!sendNew()) {
            const auto last = std::find_if(sent_.rbegin(), sent_.rend(), [](const auto &s) { return !s.arrived; });
            --inFlight_; // it is retransmitted
            last->again = true;
            ++retransmitted_;
            hand(*last);
        }
        timer_.set(now + timeout());
        return;
    }
    ++timeouts_;
    cubic_.timedOut(phase_ == Phase::Loss);
    phase_ = Phase::Loss;
    recoveryPoint_ = next_;
    for (auto &s : sent_) {
        if (s.arrived || s.lost)
            continue;
        s.lost = true;
        --inFlight_;
        ++lostCount_;
    }
    backoff_ = std::min(backoff_ + 1, 10);
    pump();
}

} // namespace msfrs::sim::access
