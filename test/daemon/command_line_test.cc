// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/command_line.h"

#include "daemon/program.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace msfrs {
namespace {

/// The parsed command line, a word for each option; `plugins` is an option of one program only.
std::string Parsed(std::vector<std::string> words)
{
    words.insert(words.begin(), "program");
    std::vector<char *> argv;
    for (auto &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    std::string said;
    try {
        const auto take = [&said](const char *const value) { said += std::string("plugins:") + (value ? value : "-"); };
        const auto line = ParseCommandLine(static_cast<int>(words.size()), argv.data(), "program", {"status", "reload"},
                                           {{"plugins", take}});
        return said + (line.check ? " check" : "") + (line.help ? " help" : "") +
               (line.version ? " version" : "") +
               (line.ask.empty() ? "" : " ask:" + line.ask) + (line.file.empty() ? "" : " file:" + line.file);
    } catch (const UsageError &error) {
        return error.what();
    }
}

TEST(CommandLine, SaysWhatIsWanted)
{
    EXPECT_EQ(Parsed({"a"}), " file:a");
    EXPECT_EQ(Parsed({"--check", "a"}), " check file:a");
    EXPECT_EQ(Parsed({"a", "--ask", "status"}), " ask:status file:a");
    EXPECT_EQ(Parsed({"--help"}), " help");
    EXPECT_EQ(Parsed({"--version"}), " version");
}

TEST(CommandLine, SaysWhatWasAskedInPlaceOfRunning)
{
    const auto said = [](const CommandLine &line) {
        ::testing::internal::CaptureStdout();
        const bool answered = Answered(line, "program", "usage\n");
        return ::testing::internal::GetCapturedStdout() + (answered ? "" : "nothing");
    };
    CommandLine line;
    EXPECT_EQ(said(line), "nothing");
    line.version = true;
    const auto version = said(line);
    EXPECT_EQ(version.rfind("program ", 0), 0u);
    EXPECT_EQ(version.find_first_of("0123456789"), sizeof("program"));
    EXPECT_EQ(version.find('\n'), version.size() - 1);
    line.help = true;
    EXPECT_EQ(said(line), "usage\n");
}

TEST(CommandLine, AnOptionOfOneProgramHasAValueOrNot)
{
    EXPECT_EQ(Parsed({"--plugins", "d", "a"}), "plugins:d file:a");
    EXPECT_EQ(Parsed({"--plugins=d", "a"}), "plugins:d file:a");
    EXPECT_EQ(Parsed({"--plugins", "d"}), "plugins:d");
    EXPECT_EQ(Parsed({"--plugins"}), "plugins:-");
    EXPECT_EQ(Parsed({"--plugins", "--check", "a"}), "plugins:- check file:a");
}

TEST(CommandLine, KnowsItsCommands)
{
    EXPECT_EQ(Parsed({"--ask", "stats", "a"}), "--ask stats: unknown; commands are status, reload");
    EXPECT_EQ(Parsed({"--ask", "", "a"}), "--ask : unknown; commands are status, reload");
}

TEST(CommandLine, WantsOneFile)
{
    constexpr auto One = "give one configuration file; see program --help";
    for (const auto &words : std::vector<std::vector<std::string>>{
             {}, {"a", "b"}, {"--check"}, {"--ask", "status"}, {"--plugins", "--check"}, {"--plugins", "d", "a", "b"}})
        EXPECT_EQ(Parsed(words), One);
    ::testing::internal::CaptureStderr(); // getopt reports unknown options
    EXPECT_EQ(Parsed({"--sheck", "a"}), "see program --help");
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("--sheck"), std::string::npos);
}

} // namespace
} // namespace msfrs
