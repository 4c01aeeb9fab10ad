// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Exchanges: what waits, what passes, and when a server counts as silent.
#include "exchange/exchange.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace msfrs {
namespace {

constexpr msfrs_time Ms = 1'000'000, Start = 1'000'000'000'000;

/// A record of TLS 1.3 with so many bytes of HTTP/2 frames in it.
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
    /// a request is granted, answered and over
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
    EXPECT_FALSE(client(Record(40).substr(20))) << "and so is what is left of it";
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
    EXPECT_EQ(patience(), 200 * Ms);
    exchange.end();
    EXPECT_FALSE(client(Record(13)));
}

TEST_F(ExchangeTest, ASilentServerIsWaitedForByWhatItHasSaidAndHowFarItIs)
{
    exchange.begin(now);
    EXPECT_EQ(patience(), 1100 * Ms) << "connecting: a SYN that is lost comes again after a second";
    EXPECT_EQ(patience(40 * Ms), 600 * Ms);
    EXPECT_EQ(patience(300 * Ms), 900 * Ms);
    server(Record(1000).substr(0, 500));
    EXPECT_EQ(patience(40 * Ms), 200 * Ms) << "in the middle of a record";
    EXPECT_EQ(patience(300 * Ms), 600 * Ms);
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
    EXPECT_EQ(patience(300 * Ms), 600 * Ms);
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
    now += 501 * Ms;
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
    server(std::string(16384, 'x')); // a push
    EXPECT_FALSE(exchange.mayGoOnUnasked(now + 5000 * Ms)) << "what came too much is made up for first";
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
            EXPECT_EQ(exchange.state(), before == Exchange::State::Asked ? Exchange::State::Answered : before);
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
