// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Exchanges: which bytes wait, which pass, and when a server counts as silent.
#include "exchange/exchange.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace msfrs {
namespace {

constexpr msfrs_time Ms = 1'000'000, Start = 1'000'000'000'000;

/// A TLS 1.3 record with `plain` bytes of HTTP/2 frames.
std::string Record(const size_t plain, const unsigned char type = 23, const size_t overhead = 17)
{
    const auto length = plain + overhead;
    std::string record = {static_cast<char>(type), 3, 3, static_cast<char>(length >> 8), static_cast<char>(length)};
    return record + std::string(length, 'x');
}

class ExchangeTest : public ::testing::Test {
protected:
    bool client(const std::string &bytes) { return exchange.clientSays(bytes.data(), bytes.size(), now); }
    void server(const std::string &bytes) { exchange.serverSays(bytes.data(), bytes.size(), now); }
    /// ns until the server counts as silent
    msfrs_time patience(const msfrs_time srtt = 0) const { return exchange.silentAt(srtt) - now; }
    /// A request is granted, answered and completed.
    void serve()
    {
        EXPECT_FALSE(client(Record(60)));
        exchange.begin(now);
        server(Record(1000));
        now = exchange.silentAt(0);
        exchange.end();
    }

    Exchange exchange;
    msfrs_time now = Start;
};

TEST_F(ExchangeTest, AClientsWordsWaitForATurnOnceTheExchangeIsOver)
{
    EXPECT_EQ(exchange.state(), Exchange::State::Over);
    EXPECT_FALSE(client(Record(60)));
    exchange.begin(now);
    EXPECT_EQ(exchange.state(), Exchange::State::Asked);
    EXPECT_TRUE(client(Record(60))) << "a second stream while the first is awaited";
    server(Record(1000));
    EXPECT_TRUE(client(Record(60))) << "and while it is answered";
    exchange.end();
    EXPECT_FALSE(client(Record(60)));
}

TEST_F(ExchangeTest, HousekeepingPassesWithoutATurn)
{
    serve();
    for (const size_t frame : {9, 13, 17, 26}) // SETTINGS ack, WINDOW_UPDATE, PING, two WINDOW_UPDATEs
        EXPECT_TRUE(client(Record(frame))) << frame;
    EXPECT_TRUE(client(Record(2))) << "an alert: the client closes";
    EXPECT_TRUE(client(Record(2, 21, 0))) << "the same before it is encrypted";
    EXPECT_EQ(exchange.state(), Exchange::State::Over);
    EXPECT_FALSE(client(Record(31))) << "a GET whose headers the server knows can be 48 bytes on the wire";
}

TEST_F(ExchangeTest, HousekeepingAndARequestTogetherAreARequest)
{
    serve();
    EXPECT_FALSE(client(Record(13) + Record(40)));
    EXPECT_FALSE(client(Record(40).substr(0, 20)));
    EXPECT_FALSE(client(Record(40).substr(20))) << "and so is the rest of it";
}

TEST_F(ExchangeTest, AHeaderInTwoPartsIsWaitedFor)
{
    serve();
    const auto ping = Record(17);
    EXPECT_FALSE(client(ping.substr(0, 3))) << "it may become anything";
    EXPECT_TRUE(client(ping.substr(3)));
}

TEST_F(ExchangeTest, InTls12RecordsAreLonger)
{
    EXPECT_FALSE(client(Record(200, 22, 0) + Record(1, 20, 0) + Record(16, 22, 24)));
    exchange.begin(now);
    server(Record(100));
    exchange.end();
    EXPECT_TRUE(client(Record(13, 23, 24)));
    EXPECT_FALSE(client(Record(13, 23, 17))) << "would be a WINDOW_UPDATE in TLS 1.3";
    EXPECT_FALSE(client(Record(2, 23, 17))) << "and this an alert";
    EXPECT_TRUE(client(Record(2, 21, 24))) << "an alert";
}

TEST_F(ExchangeTest, WhatIsNotTlsIsARequestWheneverTheClientSpeaks)
{
    EXPECT_FALSE(client("GET / HTTP/1.1\r\n\r\n"));
    exchange.begin(now);
    server("HTTP/1.1 200 OK\r\n\r\n");
    EXPECT_FALSE(exchange.mayBeComplete());
    EXPECT_EQ(patience(), 600 * Ms);
    exchange.end();
    EXPECT_FALSE(client(Record(13)));
}

TEST_F(ExchangeTest, ASilentServerIsWaitedForByWhatItHasSaidAndHowFarItIs)
{
    exchange.begin(now);
    EXPECT_EQ(patience(), 1200 * Ms) << "connecting: a SYN that is lost comes again after a second";
    EXPECT_EQ(patience(40 * Ms), 600 * Ms);
    EXPECT_EQ(patience(300 * Ms), 900 * Ms);
    server(Record(1000).substr(0, 500));
    EXPECT_EQ(patience(40 * Ms), 600 * Ms) << "in the middle of a record";
    EXPECT_EQ(patience(600 * Ms), 1800 * Ms);
    server(Record(1000).substr(500));
    EXPECT_TRUE(exchange.mayBeComplete());
    EXPECT_EQ(patience(300 * Ms), 50 * Ms);
    now += 30 * Ms;
    client(Record(60));
    EXPECT_EQ(patience(300 * Ms), 900 * Ms) << "asked again";
}

TEST_F(ExchangeTest, AnHttp1ResponseHasNoEndsOfRecords)
{
    exchange.begin(now);
    exchange.serverSays(nullptr, 1000, now);
    EXPECT_FALSE(exchange.mayBeComplete());
    EXPECT_EQ(patience(100 * Ms), 600 * Ms);
}

TEST_F(ExchangeTest, APauseOfOursIsNoSilenceOfTheServer)
{
    exchange.begin(now);
    server(Record(1000));
    now += 5000 * Ms;
    exchange.resume(now);
    EXPECT_EQ(patience(), 50 * Ms);
}

TEST_F(ExchangeTest, AnUploadNeedsNoPlaceAndNoTurnUntilItPauses)
{
    EXPECT_FALSE(client(Record(60)));
    exchange.begin(now);
    EXPECT_TRUE(client(Record(16000)));
    EXPECT_EQ(exchange.state(), Exchange::State::Asked);
    EXPECT_TRUE(client(Record(1000)));
    EXPECT_EQ(exchange.state(), Exchange::State::Uploading);
    EXPECT_LE(exchange.silentAt(300 * Ms), now);
    exchange.end();
    for (int n = 0; n < 10; ++n) {
        now += 400 * Ms;
        EXPECT_TRUE(client(Record(16000)));
        server(Record(13)); // WINDOW_UPDATE
    }
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    now += 1201 * Ms;
    EXPECT_FALSE(client(Record(16000)));
}

TEST_F(ExchangeTest, TheAnswerToAnUploadNeedsATurn)
{
    exchange.begin(now);
    client(Record(16000));
    client(Record(16000));
    exchange.end();
    server(Record(3000));
    EXPECT_FALSE(exchange.mayGoOnUnasked(now));
    exchange.begin(now);
    EXPECT_EQ(exchange.state(), Exchange::State::Asked);
}

TEST_F(ExchangeTest, WhatTheServerSaysUnaskedPassesUpToAnAllowance)
{
    serve();
    server(Record(1000));
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    server(Record(1000));
    EXPECT_FALSE(exchange.mayGoOnUnasked(now));
    now += 1000 * Ms;
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    for (int n = 0; n < 20; ++n, now += 1000 * Ms) // a chat: 1200 bytes a second
        server(Record(1178));
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    server(std::string(16384, 'x')); // an HTTP/2 push
    EXPECT_FALSE(exchange.mayGoOnUnasked(now + 5000 * Ms)) << "what came too much is made up for first";
}

TEST_F(ExchangeTest, HousekeepingThatTheServerSaysUnaskedCountsToo)
{
    serve();
    for (const size_t frame : {9, 13, 17, 26, 2}) {
        exchange.end();
        int records = 0;
        while (exchange.mayGoOnUnasked(now) && records < 1000) {
            server(Record(frame));
            ++records;
        }
        EXPECT_LE(records, 1500 / static_cast<int>(Record(frame).size()) + 1) << "records of frames of " << frame;
        exchange.end();
        for (int n = 0; n < 30; ++n, now += 1000 * Ms) // a PING every 30 ms would be 1500 bytes a second
            server(Record(frame));
        EXPECT_TRUE(exchange.mayGoOnUnasked(now)) << frame;
    }
}

TEST_F(ExchangeTest, AlertsAreNoWayAroundTheAllowance)
{
    serve();
    server(Record(16000, 21, 0));
    EXPECT_FALSE(exchange.mayGoOnUnasked(now));
}

TEST_F(ExchangeTest, AnUploadMayBeAcknowledgedAsFastAsItIs)
{
    exchange.begin(now);
    client(Record(16000));
    client(Record(16000));
    exchange.end();
    for (int n = 0; n < 1000; ++n) { // 40 MB/s, acknowledged as Go's servers do it
        now += Ms / 10;
        client(Record(4096 - 22));
        server(Record(13) + Record(13));
    }
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    for (int n = 0; n < 100; ++n) {
        client(Record(4096 - 22));
        server(Record(1000));
    }
    EXPECT_FALSE(exchange.mayGoOnUnasked(now)) << "a server cannot answer an upload with a download";
}

/// Recorded TLS 1.3 connections, given by the sizes of their records.
class GreetingTest : public ExchangeTest {
protected:
    static constexpr msfrs_time Round = 20 * Ms;

    static std::string Sized(const size_t length) { return Record(length, 23, 0); }
    static std::string Sized(const std::initializer_list<size_t> lengths)
    {
        std::string all;
        for (const auto length : lengths)
            all += Sized(length);
        return all;
    }

    /// Up to the client's Finished, with which it may send more. A session ticket of the server may precede it.
    void handshake(const std::string &more = "", const size_t earlyTicket = 0)
    {
        exchange.begin(now);
        EXPECT_TRUE(client(Record(512, 22, 0)));
        now += Round;
        const auto last = earlyTicket ? Sized(earlyTicket) : "";
        server(Record(122, 22, 0) + Record(1, 20, 0) + Sized({32, 399, 95, 69}) + last);
        now += 3 * Ms;
        EXPECT_TRUE(client(Record(1, 20, 0) + Sized(69) + more));
        EXPECT_EQ(exchange.state(), Exchange::State::Asked);
    }
    bool asked() const { return exchange.state() == Exchange::State::Asked; }
};

TEST_F(GreetingTest, SessionTicketsAreNoAnswer)
{
    handshake(Sized(87)); // sent with the request
    now += Round;
    server(Sized({250, 250}));
    EXPECT_TRUE(asked()) << "OpenSSL's two";
    now += 300 * Ms;
    server(Sized(300));
    EXPECT_FALSE(asked()) << "the server has thought";
    EXPECT_EQ(patience(), 50 * Ms);
}

TEST_F(GreetingTest, TicketsThatComeOneByOne)
{
    handshake();
    now += 10 * Ms;
    client(Sized(87));
    now += 10 * Ms;
    for (int n = 0; n < 4; ++n, now += 2 * Ms) {
        const auto ticket = Sized(n == 2 ? 266 : 250); // one block larger
        server(ticket.substr(0, 100));
        EXPECT_TRUE(asked()) << n;
        server(ticket.substr(100));
        EXPECT_TRUE(asked()) << n;
    }
    server(Sized(250));
    EXPECT_FALSE(asked()) << "nobody sends five";
}

TEST_F(GreetingTest, SettingsOfHttp2AreNoAnswer)
{
    // Go: a ticket with the handshake; then SETTINGS, a WINDOW_UPDATE and an acknowledgement, and after 300 ms 304.
    handshake(Sized({92, 60}), 139);
    now += Round;
    server(Sized(56));
    EXPECT_TRUE(asked());
    EXPECT_TRUE(client(Sized(26)));
    server(Sized({30, 26}));
    EXPECT_TRUE(asked());
    now += 300 * Ms;
    server(Sized(54));
    EXPECT_FALSE(asked()) << "as large as its SETTINGS, which come once";
}

TEST_F(GreetingTest, ASmallAnswerIsOne)
{
    handshake(Sized({99, 109}));
    now += Round;
    server(Sized({250, 250, 57, 147})); // tickets, SETTINGS, and 304 at once
    EXPECT_FALSE(asked());
    EXPECT_EQ(patience(), 50 * Ms);
}

TEST_F(GreetingTest, ATicketThatCameWithTheHandshakeWasTheOnlyOne)
{
    handshake(Sized(51), 139);
    now += Round;
    server(Sized(135));
    EXPECT_FALSE(asked()) << "Go over HTTP/1.1: as large as the ticket";
}

TEST_F(GreetingTest, WhatComesLateIsAnAnswer)
{
    handshake(Sized(87));
    now += 2 * Round + 51 * Ms;
    server(Sized(250));
    EXPECT_FALSE(asked()) << "a server without tickets, after some thought";
}

TEST_F(GreetingTest, AnAnswerEndsTheGreeting)
{
    handshake(Sized(87));
    server(Sized(5000));
    client(Sized(87));
    server(Sized(250));
    EXPECT_FALSE(asked());
}

TEST_F(GreetingTest, WhoHasAskedForNothingIsNotWaitedFor)
{
    handshake();
    now += Round;
    server(Sized({250, 250}));
    EXPECT_FALSE(asked());
    EXPECT_EQ(patience(), 50 * Ms) << "a browser that opens tunnels ahead";
    exchange.end();
    EXPECT_FALSE(client(Sized(87)));
    exchange.begin(now);
    server(Sized(147));
    EXPECT_FALSE(asked());
}

TEST_F(GreetingTest, AFinishedThatWaitedForItsTurn)
{
    exchange.begin(now);
    client(Record(512, 22, 0));
    now += Round;
    server(Record(122, 22, 0) + Record(1, 20, 0) + Sized({32, 399, 95, 69}));
    exchange.end();
    now += 1000 * Ms; // verification takes 1 s
    EXPECT_FALSE(client(Record(1, 20, 0) + Sized({69, 87})));
    now += 5000 * Ms;
    exchange.begin(now);
    now += Round;
    server(Sized({250, 250}));
    EXPECT_TRUE(asked());
}

TEST_F(GreetingTest, ClientsWithACertificate)
{
    exchange.begin(now);
    client(Record(512, 22, 0));
    now += Round;
    server(Record(122, 22, 0) + Record(1, 20, 0) + Sized({23, 62, 399, 95, 69}));
    client(Record(1, 20, 0) + Sized({399, 97, 69, 87}));
    now += Round;
    server(Sized({618, 618})); // the tickets contain the certificate
    EXPECT_TRUE(asked());
}

TEST_F(GreetingTest, AServerThatAsksForAnotherHello)
{
    exchange.begin(now);
    client(Record(512, 22, 0));
    now += Round;
    server(Record(88, 22, 0) + Record(1, 20, 0));
    client(Record(1, 20, 0) + Record(512, 22, 0));
    now += Round;
    server(Record(187, 22, 0) + Sized({23, 399, 96, 69}));
    client(Sized({69, 87}));
    now += Round;
    server(Sized({250, 250}));
    EXPECT_TRUE(asked());
    server(Sized(3000));
    exchange.end();
    EXPECT_TRUE(client(Record(13))) << "it is not TLS 1.2 for that";
}

TEST_F(GreetingTest, Tls12HasNone)
{
    exchange.begin(now);
    client(Record(200, 22, 0));
    server(Record(78, 22, 0) + Record(379, 22, 0) + Record(115, 22, 0) + Record(4, 22, 0));
    client(Record(37, 22, 0) + Record(1, 20, 0) + Record(40, 22, 0));
    server(Record(218, 22, 0) + Record(1, 20, 0) + Record(40, 22, 0) + Sized(64));
    client(Sized({69, 61})); // no Finished
    server(Sized(147));
    EXPECT_FALSE(asked());
}

TEST_F(ExchangeTest, HousekeepingOfTheServerIsNoAnswer)
{
    serve();
    EXPECT_FALSE(client(Record(60)));
    exchange.begin(now);
    server(Record(13)); // a WINDOW_UPDATE for the body of a POST
    server(Record(17));
    EXPECT_EQ(exchange.state(), Exchange::State::Asked);
    server(Record(40));
    EXPECT_EQ(exchange.state(), Exchange::State::Answered);
    now += 30 * Ms;
    server(Record(13));
    EXPECT_EQ(patience(), 50 * Ms) << "the server is not silent";
}

TEST_F(ExchangeTest, AnAnswerAfterALongTimePassesIfItIsLittle)
{
    EXPECT_FALSE(client(Record(60)));
    exchange.begin(now);
    now = exchange.silentAt(40 * Ms);
    EXPECT_EQ(now, Start + 600 * Ms);
    exchange.end();
    now = Start + 100'000 * Ms;
    server(Record(1000));
    EXPECT_EQ(exchange.state(), Exchange::State::Over);
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    server(Record(16384 - 17));
    EXPECT_FALSE(exchange.mayGoOnUnasked(now)) << "the rest needs a turn";
}

TEST_F(ExchangeTest, AByteNowAndThenNeedsATurnEachAndNothingAddsUp)
{
    for (int n = 0; n < 100; ++n) {
        EXPECT_FALSE(client("x")) << n;
        exchange.begin(now);
        EXPECT_EQ(patience(), 1200 * Ms);
        now = exchange.silentAt(0);
        exchange.end();
        EXPECT_EQ(exchange.state(), Exchange::State::Over) << "and not an upload, " << n;
    }
}

TEST_F(ExchangeTest, AClockThatGoesBackHoldsNobodyForLong)
{
    serve();
    EXPECT_FALSE(client(Record(60)));
    exchange.begin(now);
    const auto before = now;
    now -= 3'600'000 * Ms;
    server(Record(1000));
    EXPECT_EQ(patience(), 50 * Ms) << "from the latest word on";
    client(Record(60));
    EXPECT_EQ(patience(), 1200 * Ms);
    exchange.end();
    server(Record(3000));
    EXPECT_FALSE(exchange.mayGoOnUnasked(now));
    EXPECT_FALSE(exchange.mayGoOnUnasked(now - 1000 * Ms)) << "nothing is made up for, nothing is lost";
    EXPECT_TRUE(exchange.mayGoOnUnasked(now + 2000 * Ms));
    now = before + 3'600'000 * Ms;
    EXPECT_TRUE(exchange.mayGoOnUnasked(now));
    EXPECT_FALSE(client(Record(60)));
    exchange.begin(now);
    EXPECT_EQ(patience(), 1200 * Ms);
}

TEST_F(ExchangeTest, ManyEventsKeepTheStatesApart)
{
    std::mt19937_64 random(7);
    for (int n = 0; n < 100'000; ++n) {
        now += static_cast<msfrs_time>(random() % 300) * Ms;
        const auto size = 1 + random() % 3000;
        std::string bytes(size, static_cast<char>(random()));
        if (random() % 2)
            bytes = Record(size);
        const auto before = exchange.state();
        switch (random() % 4) {
        case 0:
            if (!exchange.clientSays(bytes.data(), bytes.size(), now) || before == Exchange::State::Over) {
                EXPECT_EQ(exchange.state(), Exchange::State::Over) << "what waits or is housekeeping begins nothing";
            }
            break;
        case 1:
            exchange.serverSays(bytes.data(), bytes.size(), now);
            if (exchange.state() != before) {
                EXPECT_EQ(before, Exchange::State::Asked);
                EXPECT_EQ(exchange.state(), Exchange::State::Answered);
            }
            break;
        case 2:
            exchange.begin(now);
            EXPECT_GT(exchange.silentAt(0), now);
            break;
        case 3:
            if (exchange.silentAt(0) <= now)
                exchange.end();
        }
    }
}

} // namespace
} // namespace msfrs
