// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/control.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>

namespace msfrs::test {
namespace {

class ControlSocket : public testing::Test {
protected:
    ControlSocket()
    {
        if (!mkdtemp(directory_))
            Fail("mkdtemp");
        path = std::string(directory_) + "/sock";
    }
    ~ControlSocket() override
    {
        unlink(path.c_str());
        rmdir(directory_);
    }

    /// Sends a command from another thread while the loop runs here.
    std::string ask(const std::string &command)
    {
        std::string answer;
        std::atomic<bool> done{false};
        std::thread client([&] {
            try {
                answer = Ask(path, "msfrs-test", command);
            } catch (const SystemError &error) {
                answer = error.what();
            }
            done = true;
        });
        while (!done) {
            event_base_loop(base.get(), EVLOOP_NONBLOCK);
            std::this_thread::yield();
        }
        client.join();
        return answer;
    }

    EventBase base = NewEventBase();
    std::string path;

private:
    char directory_[32] = "/tmp/msfrs-control-XXXXXX";
};

std::string Echo(const std::string_view command) { return "you said " + std::string(command) + "\n"; }

TEST_F(ControlSocket, AnswersOneLine)
{
    const Control control(base.get(), path, "msfrs-test", Echo);
    EXPECT_EQ(ask("status"), "you said status\n");
    struct stat found{};
    ASSERT_EQ(stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0660u);
}

TEST_F(ControlSocket, AnswersAtLength)
{
    const Control control(base.get(), path, "msfrs-test", [](std::string_view) { return std::string(3'000'000, 'x'); });
    EXPECT_EQ(ask("all").size(), 3'000'000u);
}

TEST_F(ControlSocket, RefusesACommandWithoutEnd)
{
    const Control control(base.get(), path, "msfrs-test", Echo);
    EXPECT_EQ(ask(std::string(64, 'a')), "you said " + std::string(64, 'a') + "\n");
    EXPECT_EQ(ask(std::string(100'000, 'a')).find("you said"), std::string::npos);
    EXPECT_EQ(ask("status"), "you said status\n"); // and it continues
}

TEST_F(ControlSocket, ReplacesWhatADeadDaemonLeft)
{
    {
        const Descriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::copy(path.begin(), path.end(), address.sun_path);
        ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
    }
    const Control control(base.get(), path, "msfrs-test", Echo);
    EXPECT_EQ(ask("a"), "you said a\n");
}

TEST_F(ControlSocket, LeavesAloneWhatIsNotItsOwn)
{
    const auto refusal = [this] {
        try {
            Control(base.get(), path, "msfrs-test", Echo);
        } catch (const SystemError &error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    {
        const Control control(base.get(), path, "msfrs-test", Echo);
        EXPECT_EQ(refusal(), "control " + path + ": another msfrs-test listens there");
    }
    EXPECT_NE(access(path.c_str(), F_OK), 0); // removed at the daemon's exit
    std::ofstream(path) << "a file";
    EXPECT_EQ(refusal(), "control " + path + ": exists and is not a socket");
}

TEST_F(ControlSocket, AnswersBesideAnyNumberOfClientsThatNeverEndTheirCommand)
{
    const Control control(base.get(), path, "msfrs-test", Echo);
    std::vector<Descriptor> slow;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    for (size_t n = 0; n < 3 * Control::MostConnections; ++n) {
        slow.emplace_back(socket(AF_UNIX, SOCK_STREAM, 0));
        ASSERT_EQ(connect(slow.back().get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
        for (const auto &each : slow) // a byte now and then; the first clients have been closed by now
            send(each.get(), "s", 1, MSG_NOSIGNAL);
        event_base_loop(base.get(), EVLOOP_NONBLOCK);
    }
    EXPECT_EQ(ask("status"), "you said status\n");
    EXPECT_EQ(ask("metrics"), "you said metrics\n");
}

TEST_F(ControlSocket, SaysThatThereWasNoAnswer)
{
    const Control control(base.get(), path, "msfrs-test", [](std::string_view) { return std::string(); });
    // A client without a response is closed when its time is over; one with a command that is too long, at once.
    EXPECT_EQ(ask(std::string(100'000, 'a')).rfind("control " + path, 0), 0u);
}

TEST_F(ControlSocket, SaysThatNobodyAnswers)
{
    EXPECT_EQ(ask("status"),
              "control " + path + ": no answer; does msfrs-test run?: No such file or directory");
}

} // namespace
} // namespace msfrs::test
