// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/http.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

/// A request's status: 200, that of its refusal, or 0 if it is incomplete.
int StatusOf(const std::string &text)
{
    try {
        return ReadRequest(text) ? 200 : 0;
    } catch (const Refused &refused) {
        return refused.status;
    }
}

std::string Get(const std::string &target, const std::string &more = "")
{
    return "GET " + target + " HTTP/1.1\r\nHost: localhost:3880\r\n" + more + "\r\n";
}

TEST(Http, ARequest)
{
    const auto request =
        ReadRequest("HEAD /user?name=%C3%A4+%3Cb%3E HTTP/1.1\r\nhOST:\tGate.Example:80 \r\n"
                    "Authorization: Basic Zm9v\r\n\r\n");
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->head);
    EXPECT_EQ(request->path, "/user");
    EXPECT_EQ(request->name, "\xC3\xA4 <b>");
    EXPECT_EQ(request->host, "gate.example");
    EXPECT_EQ(request->credentials, "Basic Zm9v");
    EXPECT_FALSE(ReadRequest(Get("/"))->name);
}

TEST(Http, ARequestThatComesByAndBy)
{
    const auto text = Get("/data.json");
    for (size_t n = 0; n < text.size(); ++n)
        EXPECT_EQ(StatusOf(text.substr(0, n)), 0) << n;
    EXPECT_EQ(StatusOf(text), 200);
    EXPECT_EQ(StatusOf(text + "more"), 200);
}

struct Case {
    const char *text;
    int status;
};
class HttpRefused : public testing::TestWithParam<Case> {};

TEST_P(HttpRefused, Line)
{
    EXPECT_EQ(StatusOf(std::string(GetParam().text) + "\r\n\r\n"), GetParam().status) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, HttpRefused,
    testing::Values(Case{"PUT / HTTP/1.1\r\nHost: a", 405}, Case{"get / HTTP/1.1\r\nHost: a", 405},
                    Case{"GET / HTTP/2.0\r\nHost: a", 505}, Case{"GET /\r\nHost: a", 400}, Case{"GET", 400},
                    Case{"GET  / HTTP/1.1\r\nHost: a", 400}, Case{"GET http://a/ HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /\x01 HTTP/1.1\r\nHost: a", 400}, Case{"GET /\xC3\xA4 HTTP/1.1\r\nHost: a", 400},
                    Case{"GET / HTTP/1.1", 400}, Case{"GET / HTTP/1.1\r\nHost:", 400},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\nHost: a", 400}, Case{"GET / HTTP/1.1\r\nHost: a/b", 400},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\n folded", 400}, Case{"GET / HTTP/1.1\r\nHost : a", 400},
                    Case{"GET / HTTP/1.1\r\nHost: a\nX: b", 400}, Case{"GET / HTTP/1.1\r\nHost: a\r\nnone", 400},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\nX: \x01", 400},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5", 413},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", 413},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nAuthorization: y", 400},
                    Case{"GET /user? HTTP/1.1\r\nHost: a", 400}, Case{"GET /user?name= HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?x=1 HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=a&b=c HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=% HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=%4 HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=%zz HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=%00 HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=%0d%0aX HTTP/1.1\r\nHost: a", 400},
                    Case{"GET /user?name=%ff HTTP/1.1\r\nHost: a", 400},
                    Case{"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0", 200},
                    Case{"GET /user?name=%41 HTTP/1.0\r\nHost: a", 200}));

TEST(Http, IsBounded)
{
    EXPECT_EQ(StatusOf(std::string(MostHead - 1, 'a')), 0);
    EXPECT_EQ(StatusOf(std::string(MostHead, 'a')), 431);
    EXPECT_EQ(StatusOf(Get("/", "X: " + std::string(MostHead, 'x') + "\r\n")), 431);
    EXPECT_EQ(StatusOf(Get("/user?name=" + std::string(256, 'n'))), 200);
    EXPECT_EQ(StatusOf(Get("/user?name=" + std::string(257, 'n'))), 400);
    EXPECT_EQ(StatusOf(std::string("GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 33)), 400);
}

TEST(Http, Hosts)
{
    EXPECT_EQ(HostOf("LOCALHOST"), "localhost");
    EXPECT_EQ(HostOf("10.0.0.1:80"), "10.0.0.1");
    EXPECT_EQ(HostOf("[::1]:3880"), "[::1]");
    EXPECT_EQ(HostOf("[FE80::1]"), "[fe80::1]");
    for (const char *const none : {"", ":80", "a:b", "a:123456", "a b", "[::1", "::1", "[]", "a@b", "<b>", "a,b"})
        EXPECT_EQ(HostOf(none), "") << none;
}

TEST(Http, Tokens)
{
    EXPECT_EQ(TokenOf("Bearer secret"), "secret");
    EXPECT_EQ(TokenOf("bEARER  secret"), "secret");
    EXPECT_EQ(TokenOf("Basic YW55Ym9keTpzZWM6cmV0"), "sec:ret"); // anybody:sec:ret
    EXPECT_EQ(TokenOf("Basic OnNlY3JldA=="), "secret");          // :secret
    EXPECT_EQ(TokenOf("Basic bm9jb2xvbg=="), "");
    EXPECT_EQ(TokenOf("Basic !!!"), "");
    EXPECT_EQ(TokenOf("Digest secret"), "");
    EXPECT_EQ(TokenOf(""), "");
    EXPECT_TRUE(SameToken("0123456789abcdef", "0123456789abcdef"));
    for (const char *const other : {"", "0", "0123456789abcdeF", "1123456789abcdef", "0123456789abcdef0",
                                    "0123456789abcdef0123456789abcdef"})
        EXPECT_FALSE(SameToken(other, "0123456789abcdef")) << other;
}

TEST(Http, Answers)
{
    const auto text = Write({404, "text/plain", "body"}, false);
    EXPECT_EQ(text.substr(0, 24), "HTTP/1.1 404 Not Found\r\n");
    EXPECT_NE(text.find("Content-Length: 4\r\n"), text.npos);
    EXPECT_EQ(text.substr(text.size() - 8), "\r\n\r\nbody");
    EXPECT_EQ(Write({200, "text/plain", "body"}, true).find("body"), text.npos);
}

} // namespace
} // namespace msfrs::test
