// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/site.h"
#include "support/directory.h"
#include "support/plugins.h"

#include "daemon/descriptor.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

class Pages : public testing::Test {
protected:
    Pages()
    {
        now.data = "{\"data\":1}";
        now.history = "{\"history\":1}";
        now.users = "{\"users\":1}";
        now.own = [](const std::string &address) { return "{\"own\":\"" + address + "\"}"; };
        now.past = [](const std::string &name) { return "{\"past\":\"" + name + "\"}"; };
        now.user = [](const std::string &name) { return "{\"user\":\"" + name + "\"}"; };
    }

    std::string answer(const Site &site, const std::string &target, const std::string &more = "",
                       const std::string &host = "localhost")
    {
        return site.answer("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n", "10.0.0.5", now)
            .value_or("");
    }
    static std::string status(const std::string &answer) { return answer.substr(9, 3); }
    static std::string body(const std::string &answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

    Prepared now;
    const Files files = {{"/", {"text/html", "<p>page"}}, {"/user", {"text/html", "<p>user"}},
                         {"/me", {"text/html", "<p>me"}}, {"/me.js", {"text/javascript", "me()"}},
                         {"/page.js", {"text/javascript", "page()"}}, {"/chart.js", {"text/javascript", "chart()"}},
                         {"/lang/en", {"application/json", "en"}}, {"/lang/de", {"application/json", "de"}}};
    const Site open{{{"localhost", "[::1]"}, ""}, files}, closed{{{"localhost"}, "0123456789abcdef"}, files},
        users{{{"localhost"}, "0123456789abcdef"}, files, Audience::Users};
};

TEST_F(Pages, WhatThereIs)
{
    EXPECT_EQ(body(answer(open, "/")), "<p>page");
    EXPECT_EQ(body(answer(open, "/data.json")), now.data);
    EXPECT_EQ(body(answer(open, "/history.json")), now.history);
    EXPECT_EQ(body(answer(open, "/user.json?name=b%41")), "{\"user\":\"bA\"}");
    EXPECT_EQ(body(answer(open, "/user?name=x")), "<p>user");
    EXPECT_EQ(body(answer(open, "/healthz")), "ok\n");
    EXPECT_EQ(body(answer(open, "/past.json?name=x")), "{\"past\":\"x\"}");
    EXPECT_EQ(body(answer(open, "/users.json")), now.users);
    EXPECT_EQ(body(answer(open, "/me.json")), "{\"own\":\"10.0.0.5\"}");
    EXPECT_EQ(status(answer(open, "/user.json")), "400");
    EXPECT_EQ(status(answer(open, "/data.json?name=x")), "400");
    for (const char *const none : {"/none", "//", "/../etc/passwd", "/%2e%2e/", "/index.html", "/data.json/"})
        EXPECT_EQ(status(answer(open, none)), "404") << none;
}

TEST_F(Pages, EveryAnswerSaysWhatABrowserMayDo)
{
    for (const auto &text :
         {answer(open, "/"), answer(open, "/none"), answer(closed, "/"), answer(open, "/", "", "evil")}) {
        EXPECT_NE(text.find("\r\nContent-Security-Policy: default-src 'none'; script-src 'self';"), text.npos);
        EXPECT_NE(text.find("\r\nX-Content-Type-Options: nosniff\r\n"), text.npos);
        EXPECT_NE(text.find("\r\nConnection: close\r\n"), text.npos);
    }
}

TEST_F(Pages, OldFiguresAreNotHealthy)
{
    now.trouble = "Squid does not answer.";
    EXPECT_EQ(status(answer(open, "/healthz")), "503");
    EXPECT_EQ(status(answer(open, "/data.json")), "200");
}

TEST_F(Pages, OtherNamesAreRefused)
{
    EXPECT_EQ(status(answer(open, "/data.json", "", "attacker.example")), "421");
    EXPECT_EQ(status(answer(open, "/", "", "[::1]:3880")), "200");
    EXPECT_EQ(status(answer(closed, "/", "Authorization: Bearer 0123456789abcdef\r\n", "10.0.0.1")), "421");
}

TEST_F(Pages, ATokenIsWanted)
{
    for (const char *const path : {"/", "/data.json", "/history.json", "/user.json?name=x", "/none"}) {
        const auto refused = answer(closed, path);
        EXPECT_EQ(status(refused), "401") << path;
        EXPECT_NE(refused.find("\r\nWWW-Authenticate: Basic "), refused.npos);
        EXPECT_EQ(refused.find(now.data), refused.npos);
    }
    EXPECT_EQ(status(answer(closed, "/", "Authorization: Bearer 0123456789abcdee\r\n")), "401");
    EXPECT_EQ(status(answer(closed, "/", "Authorization: Bearer 0123456789abcdef\r\n")), "200");
    EXPECT_EQ(status(answer(closed, "/", "Authorization: Basic eDowMTIzNDU2Nzg5YWJjZGVm\r\n")), "200");
    EXPECT_EQ(status(answer(closed, "/healthz")), "200") << "says nothing but that it runs";
}

TEST_F(Pages, ItCanOnlyBeRead)
{
    const auto refused = open.answer("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", now).value_or("");
    EXPECT_EQ(status(refused), "405");
    EXPECT_NE(refused.find("\r\nAllow: GET, HEAD\r\n"), refused.npos);
    EXPECT_FALSE(open.answer("GET / HTTP/1.1\r\n", "", now));
}

TEST_F(Pages, UsersSeeTheirOwnPageAndNothingElse)
{
    EXPECT_EQ(body(answer(users, "/me.json", "X-Forwarded-For: 10.0.0.9\r\nForwarded: for=10.0.0.9\r\n")),
              "{\"own\":\"10.0.0.5\"}") << "the address of the connection, without a token";
    for (const char *const path : {"/", "/me"})
        EXPECT_EQ(body(answer(users, path)), "<p>me");
    EXPECT_EQ(body(answer(users, "/me.js")), "me()");
    for (const char *const path : {"/data.json", "/history.json", "/users.json", "/user.json?name=x",
                                   "/past.json?name=x", "/healthz", "/page.js", "/chart.js", "/index.html"})
        EXPECT_EQ(status(answer(users, path)), "404") << path;
    EXPECT_EQ(status(answer(users, "/user?name=x")), "404");
    EXPECT_EQ(status(answer(users, "/me.json?name=10.0.0.9")), "400");
    EXPECT_EQ(status(answer(users, "/me.json", "", "evil.example")), "421");
}

TEST_F(Pages, ABoostIsAskedForWithATokenAndOnPurpose)
{
    std::string boosted;
    const auto post = [&](const Site &site, const std::string &target, const std::string &more) {
        const auto request = "POST " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
        return status(site.answer(request, "10.0.0.5", now).value_or(""));
    };
    const std::string token = "Authorization: Bearer 0123456789abcdef\r\n", purpose = "X-Msfrs-Boost: yes\r\n";
    EXPECT_EQ(post(closed, "/boost?name=ann", token + purpose), "405") << "not offered";
    now.boost = [&](const std::string &name) { boosted = name; };
    EXPECT_EQ(post(closed, "/boost?name=ann", purpose), "401");
    EXPECT_EQ(post(closed, "/boost?name=ann", token), "403") << "as a form of a foreign page could send it";
    EXPECT_EQ(post(closed, "/boost", token + purpose), "400");
    EXPECT_EQ(post(closed, "/boost?name=ann", token + purpose + "Content-Length: 1\r\n"), "413");
    EXPECT_EQ(post(closed, "/user.json?name=ann", token + purpose), "405");
    EXPECT_EQ(post(open, "/boost?name=ann", purpose), "405") << "without a token the page is read-only";
    EXPECT_EQ(post(users, "/boost?name=ann", token + purpose), "405");
    EXPECT_EQ(status(answer(closed, "/boost?name=ann", token + purpose)), "404") << "GET changes nothing";
    EXPECT_EQ(boosted, "");
    EXPECT_EQ(post(closed, "/boost?name=ann", token + purpose + "Content-Length: 0\r\n"), "202");
    EXPECT_EQ(boosted, "ann");
    now.boost = [](const std::string &) { throw Refused(404, "There is no such user now."); };
    EXPECT_EQ(post(closed, "/boost?name=eve", token + purpose), "404");
}

TEST_F(Pages, TheLanguageOfTheBrowser)
{
    const auto words = [&](const std::string &accepted) {
        return body(answer(users, "/words.json", "Accept-Language: " + accepted + "\r\n"));
    };
    EXPECT_EQ(words("de-AT,de;q=0.9,en;q=0.8"), "de");
    EXPECT_EQ(words("en;q=0.3, DE;q=0.5"), "de");
    EXPECT_EQ(words("fr, en-GB;q=0.7, de;q=0.6"), "en");
    for (const char *const other : {"fr", "", "*", "de;q=0", ";;,,;q=", "de;q=x", "../../etc/passwd"})
        EXPECT_EQ(words(other), "en") << other;
    EXPECT_NE(answer(users, "/words.json").find("\r\nVary: Accept-Language\r\n"), std::string::npos);
}

TEST_F(Pages, AFailureIsAnAnswer)
{
    now.user = [](const std::string &) -> std::string { throw std::runtime_error("inside"); };
    const auto text = answer(open, "/user.json?name=x");
    EXPECT_EQ(status(text), "500");
    EXPECT_EQ(text.find("inside"), text.npos);
}

TEST(PageFiles, OfTheSourcesAndWithoutChart)
{
    std::string said;
    const auto files = ReadFiles(TreeFile("src/satellites/page/web"), "/nowhere/chart.js",
                                 [&](const std::string &text) { said = text; });
    EXPECT_EQ(said.substr(0, 18), "/nowhere/chart.js:");
    ASSERT_EQ(files.count("/chart.js"), 1u);
    EXPECT_EQ(files.at("/chart.js").content.substr(0, 2), "//");
    EXPECT_NE(files.at("/").content.find("<main"), std::string::npos);
    // The policy forbids everything that is not in files.
    for (const char *const path : {"/", "/user", "/me"}) {
        const auto &html = files.at(path).content;
        for (const char *const inlined : {"<style", " style=", "onclick", "javascript:", "http://", "https://"})
            EXPECT_EQ(html.find(inlined), std::string::npos) << path << " " << inlined;
    }
    EXPECT_EQ(files.count("/lang/en") + files.count("/lang/de"), 2u);
    EXPECT_THROW(ReadFiles("/nowhere", "", [](const std::string &) {}), SystemError);
}

} // namespace
} // namespace msfrs::test
