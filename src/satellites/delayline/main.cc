// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-delayline: emulates a long wire. Packets that enter one TUN interface leave by the other after a constant
/// delay that depends on their addresses; for kernels without netem, and for tests.
#include "daemon/event.h"
#include "daemon/privileges.h"
#include "daemon/program.h"
#include "daemon/realtime.h"
#include "satellites/delayline/delay_queue.h"
#include "satellites/delayline/delay_table.h"
#include "satellites/delayline/tun_device.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <getopt.h>
#include <memory>
#include <unistd.h>

namespace msfrs::delayline {

namespace {

constexpr const char *Usage =
    R"(Usage: msfrs-delayline --tun NAME[@NETNS] [--tun NAME[@NETNS]] [OPTION]... [[from:|to:]PREFIX=DELAY]...
Delays IP packets between two TUN interfaces. With one interface, the packets return into it.

  --tun NAME[@NETNS]   the interface, in the network namespace of file NETNS; created if missing; once or twice
  --table FILE         delays, one a line: [from|to] PREFIX DELAY, for example: 198.19.1.0/24 6ms
  --limit BYTES        memory for delayed packets in each direction (default 67108864; 65536 to 4294967296)
  --user NAME          user to run as once the interfaces are open (default nobody)
  --help               print this text

DELAY is a number with us, ms or s, at most 10s, for one direction. A packet gets the delay of the longest prefix that
matches its source (from), its destination (to) or either, and without a match none. Prints "ready" on standard output
once the interfaces exist; give them addresses and bring them up then. SIGUSR1 prints counters on standard error.
SIGTERM and SIGINT do so as well and end the program.
)";

struct Options {
    std::vector<std::string> tuns;
    DelayTable table;
    size_t limit = size_t{64} << 20;
    std::string user = "nobody";
    bool help = false;
};

size_t ParseLimit(const std::string &text)
{
    unsigned long long value = 0;
    const auto *const end = text.data() + text.size();
    const auto number = std::from_chars(text.data(), end, value);
    if (number.ec != std::errc() || number.ptr != end || value < 65536 || value > 4294967296)
        throw UsageError("--limit \"" + text + "\": allowed are 65536 to 4294967296 bytes");
    return static_cast<size_t>(value);
}

void AddArgument(DelayTable &table, std::string argument)
{
    const std::string where = "argument \"" + argument + "\"";
    const auto equals = argument.find('=');
    if (equals == argument.npos)
        throw UsageError(where + ": expected [from:|to:]PREFIX=DELAY");
    argument[equals] = ' ';
    for (const std::string side : {"from:", "to:"})
        if (argument.compare(0, side.size(), side) == 0)
            argument[side.size() - 1] = ' ';
    table.add(argument, where);
}

Options ParseOptions(int argc, char **argv)
{
    enum { Tun = 1, Table, Limit, User, Help };
    static const option known[] = {{"tun", required_argument, nullptr, Tun},
                                   {"table", required_argument, nullptr, Table},
                                   {"limit", required_argument, nullptr, Limit},
                                   {"user", required_argument, nullptr, User},
                                   {"help", no_argument, nullptr, Help},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    for (int found; (found = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (found == Tun)
            options.tuns.emplace_back(optarg);
        else if (found == Limit)
            options.limit = ParseLimit(optarg);
        else if (found == User)
            options.user = optarg;
        else if (found == Help)
            options.help = true;
        else if (found == Table) {
            auto file = OpenFile(optarg);
            options.table.read(file, optarg);
        } else
            throw UsageError("see msfrs-delayline --help");
    }
    for (int i = optind; i < argc; ++i)
        AddArgument(options.table, argv[i]);
    if (!options.help && (options.tuns.empty() || options.tuns.size() > 2))
        throw UsageError("--tun NAME must be given once or twice, not " + std::to_string(options.tuns.size()) +
                         " times; see msfrs-delayline --help");
    return options;
}

/// One direction: packets read from `in` are written to `out` when they are due.
class Line {
public:
    Line(event_base *base, const DelayTable &table, size_t limit, std::string name, int in, int out):
        base_(base), table_(table), name_(std::move(name)), in_(in), out_(out), queue_(limit),
        timer_(base, [this] { give(); }), readable_(base, in, EV_READ, [this] { take(); })
    {}

    void report() const
    {
        const auto &in = queue_.offered(), &out = queue_.delivered(), &lost = queue_.dropped();
        const double mean = out.packets ? static_cast<double>(lateSum_) / static_cast<double>(out.packets) : 0.0;
        std::fprintf(stderr,
                     "%s: in %llu packets %llu bytes, out %llu packets %llu bytes, dropped %llu packets %llu bytes, "
                     "unwritable %llu packets, under way %zu packets, late mean %.1f us max %.1f us, more than 1 ms "
                     "%llu packets\n",
                     name_.c_str(), Ull(in.packets), Ull(in.bytes), Ull(out.packets), Ull(out.bytes), Ull(lost.packets),
                     Ull(lost.bytes), Ull(unwritable_), queue_.heldPackets(), mean * 1e-3,
                     static_cast<double>(lateMost_) * 1e-3, Ull(late_));
    }
    bool failed() const { return failed_; }

private:
    static unsigned long long Ull(uint64_t value) { return value; }

    void take()
    {
        // Bounded, so that a flood from one side does not delay due packets of the other.
        for (int turns = 0; turns < 64; ++turns) {
            const auto got = read(in_, buffer_.data(), buffer_.size());
            if (got < 0) {
                if (errno != EAGAIN && errno != EINTR)
                    stop();
                break;
            }
            const auto length = static_cast<size_t>(got);
            const auto now = MonotonicNow();
            const auto ends = ParseEndpoints(buffer_.data(), length);
            const auto entry = ends ? table_.find(*ends) : std::nullopt;
            queue_.push(entry.value_or(table_.size()), Packet(buffer_.begin(), buffer_.begin() + got),
                        entry ? table_.delay(*entry) : 0, now);
        }
        give();
    }

    void give()
    {
        const auto now = MonotonicNow();
        while (const auto due = queue_.nextDue()) {
            if (*due > now)
                break;
            lateSum_ += now - *due;
            lateMost_ = std::max(lateMost_, now - *due);
            late_ += now - *due > 1'000'000;
            const auto packet = queue_.pop(now);
            if (write(out_, packet->data(), packet->size()) < 0 && unwritable_++ == 0)
                std::fprintf(stderr, "%s: a packet could not be written: %s (logged once; all are counted)\n",
                             name_.c_str(), std::strerror(errno));
        }
        timer_.arm(queue_.nextDue());
    }

    void stop()
    {
        std::fprintf(stderr, "%s: the interface can no longer be read: %s\n", name_.c_str(), std::strerror(errno));
        failed_ = true;
        event_base_loopbreak(base_);
    }

    event_base *base_;
    const DelayTable &table_;
    std::string name_;
    int in_, out_;
    DelayQueue queue_;
    std::array<uint8_t, 65536> buffer_{};
    uint64_t unwritable_ = 0, late_ = 0;
    Nanoseconds lateSum_ = 0, lateMost_ = 0;
    bool failed_ = false;
    Timer timer_;
    Event readable_;
};

int Run(const Options &options)
{
    std::vector<Descriptor> tuns;
    for (const auto &spec : options.tuns)
        tuns.push_back(OpenTun(spec));
    const Realtime realtime;
    if (const int error = realtime.error())
        std::fprintf(stderr, "no real-time priority, a busy machine may delay packets: %s\n",
                     std::strerror(error));
    DropPrivileges(options.user);

    const auto base = NewEventBase();
    std::vector<std::unique_ptr<Line>> lines;
    for (size_t i = 0; i < tuns.size(); ++i) {
        const size_t other = tuns.size() - 1 - i;
        lines.push_back(std::make_unique<Line>(base.get(), options.table, options.limit,
                                               options.tuns[i] + " > " + options.tuns[other], tuns[i].get(),
                                               tuns[other].get()));
    }
    const auto report = [&lines] { std::for_each(lines.begin(), lines.end(), [](auto &line) { line->report(); }); };
    const auto end = [&base] { event_base_loopbreak(base.get()); };
    const Event usr1(base.get(), SIGUSR1, EV_SIGNAL, report), term(base.get(), SIGTERM, EV_SIGNAL, end),
        interrupt(base.get(), SIGINT, EV_SIGNAL, end);
    std::puts("ready");
    std::fflush(stdout);
    event_base_dispatch(base.get());
    report();
    return std::any_of(lines.begin(), lines.end(), [](auto &line) { return line->failed(); }) ? 1 : 0;
}

} // namespace

} // namespace msfrs::delayline

int main(int argc, char **argv)
{
    using namespace msfrs::delayline;
    return msfrs::ExitCodeOf("msfrs-delayline", [&] {
        const auto options = ParseOptions(argc, argv);
        if (options.help) {
            std::fputs(Usage, stdout);
            return 0;
        }
        return Run(options);
    });
}
