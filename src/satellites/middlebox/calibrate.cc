// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/calibrate.h"

#include "edge/packet.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <ostream>
#include <random>
#include <stdexcept>

namespace msfrs::middlebox {

namespace {

constexpr size_t Batch = 16, Headers = 28, Remembered = 64;

using Bytes = std::vector<uint8_t>;

struct TestPacket {
    Bytes bytes;
    FlowKey key;
};

/// Packets as documented at Measure().
class Packets {
public:
    explicit Packets(const uint64_t seed): random_(seed) {}

    TestPacket next(const size_t size)
    {
        Bytes b(size);
        b[0] = 0x45;
        put16(b, 2, size);
        b[8] = 64;
        b[9] = 17;
        const uint64_t flow = random_() % Flows;
        const uint8_t ends[] = {198, 18, uint8_t(flow >> 8), uint8_t(flow), 198, 19, 0, 1};
        std::copy(std::begin(ends), std::end(ends), b.begin() + 12);
        put16(b, 10, checksum(b));
        put16(b, 20, 1024 + flow);
        put16(b, 22, 443);
        put16(b, 24, size - 20);
        fill(b);
        return {b, *edge::ReadKey(b.data(), b.size())};
    }

private:
    static constexpr uint64_t Flows = 1000;

    static void put16(Bytes &b, const size_t at, const uint64_t value)
    {
        b[at] = static_cast<uint8_t>(value >> 8);
        b[at + 1] = static_cast<uint8_t>(value);
    }

    static uint16_t checksum(const Bytes &b)
    {
        unsigned sum = 0;
        for (size_t i = 0; i < 20; i += 2)
            sum += static_cast<unsigned>(b[i] << 8 | b[i + 1]);
        return static_cast<uint16_t>(~((sum & 0xffff) + (sum >> 16)));
    }

    void fill(Bytes &b)
    {
        auto &old = payloads_[b.size()];
        const size_t length = b.size() - Headers;
        if (old.size() == Remembered && random_() % 2) {
            std::copy_n(old[random_() % Remembered].begin(), length, b.begin() + Headers);
            return;
        }
        for (size_t i = 0; i < length; i += 8) {
            const uint64_t word = random_();
            std::memcpy(&b[Headers + i], &word, std::min<size_t>(8, length - i));
        }
        Bytes payload(b.begin() + Headers, b.end());
        if (old.size() < Remembered)
            old.push_back(std::move(payload));
        else
            old[random_() % Remembered] = std::move(payload);
    }

    std::mt19937_64 random_;
    std::map<size_t, std::vector<Bytes>> payloads_; ///< recent ones, by packet size
};

double Median(std::vector<int64_t> &v)
{
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
    std::nth_element(v.begin(), middle, v.end());
    return static_cast<double>(*middle);
}

} // namespace

std::vector<TimeOfSize> Measure(Function &function, const std::vector<size_t> &sizes, const unsigned rounds,
                                const uint64_t seed, const std::function<int64_t()> &now)
{
    for (const auto size : sizes) {
        if (size < 64 || size > 65535)
            throw std::invalid_argument("packet size " + std::to_string(size) + ": allowed are 64 to 65535 bytes");
    }
    Packets packets(seed);
    std::vector<std::vector<int64_t>> times(sizes.size());
    std::vector<TestPacket> batch;
    for (unsigned round = 0; round < rounds; ++round) { // sizes in turn, so that a disturbance does not affect only one
        for (size_t n = 0; n < sizes.size(); ++n) {
            batch.clear();
            for (size_t i = 0; i < Batch; ++i)
                batch.push_back(packets.next(sizes[n]));
            const auto begin = now();
            for (const auto &p : batch)
                function.process({{p.bytes.data(), p.bytes.size()}, p.key});
            times[n].push_back(now() - begin);
        }
    }
    std::vector<TimeOfSize> medians;
    for (size_t n = 0; n < sizes.size(); ++n)
        medians.push_back({static_cast<double>(sizes[n]), Median(times[n]) / (1e3 * Batch)});
    return medians;
}

int Calibrate(std::ostream &out, const FunctionOptions &options, const std::function<int64_t()> &now)
{
    constexpr unsigned Rounds = 101;
    std::vector<size_t> sizes;
    for (size_t size = 100; size <= 1500; size += 100)
        sizes.push_back(size);

    out << "# CPU time of a packet of x bytes: alpha x + beta microseconds, least squares over the medians of sizes "
        << sizes.front() << " to " << sizes.back() << ".\n"
        << "# Beside it ATFQ's table II, and how far a measured size is from the line at most.\n";
    for (const auto &kind : FunctionKinds()) {
        const auto function = kind.make(options);
        const auto samples = Measure(*function, sizes, Rounds, options.random(), now);
        if (std::any_of(samples.begin(), samples.end(), [](const TimeOfSize &s) { return !(s.microseconds > 0); })) {
            out << "# " << kind.name << ": " << Batch << " packets took no time: the clock is too coarse\n";
            return 1;
        }
        const auto line = Fit(samples);
        char text[160];
        std::snprintf(text, sizeof(text), "function %-10s alpha=%-10.6f beta=%-8.4f # table II: %g x + %g; %.0f %%\n",
                      kind.name, line.alpha, line.beta, kind.paperAlpha, kind.paperBeta,
                      100 * GreatestError(line, samples));
        out << text;
    }
    return 0;
}

} // namespace msfrs::middlebox
