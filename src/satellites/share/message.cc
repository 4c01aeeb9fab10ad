// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/message.h"

#include "plugin/number.h"

#include <algorithm>
#include <cstring>

namespace msfrs::share {

namespace {

constexpr std::string_view Magic = "MSFRSGW";
constexpr char Version = 2;
constexpr size_t HeadSize = 8 + 4 + 14 * 8, ClassSize = 24, UserSize = 20;
static_assert(MostMessage == HeadSize + MostClasses * ClassSize + MostUsers * UserSize);

class Writer {
public:
    void bytes(const std::string_view text) { text_ += text; }
    void number(uint64_t value, const unsigned size = 8)
    {
        for (unsigned n = 0; n < size; ++n, value >>= 8)
            text_ += static_cast<char>(value & 0xff);
    }
    void real(const double value)
    {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        number(bits);
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

/// Reads a message of verified length, and records the first value outside its range.
class Reader {
public:
    explicit Reader(const std::string_view text): text_(text) {}

    uint64_t number(const unsigned size = 8)
    {
        uint64_t value = 0;
        for (unsigned n = size; n-- > 0;)
            value = value << 8 | static_cast<unsigned char>(text_[n]);
        text_.remove_prefix(size);
        return value;
    }
    uint64_t upTo(const char *const name, const uint64_t most, const unsigned size = 8)
    {
        const auto value = number(size);
        if (value > most)
            blame(std::string(name) + " " + std::to_string(value) + ": allowed are 0 to " + std::to_string(most));
        return value;
    }
    uint64_t key(const char *const name)
    {
        const auto value = number();
        if (value == 0)
            blame(std::string(name) + " without a key");
        return value;
    }
    double real(const char *const name, const double least, const double most)
    {
        const auto bits = number();
        double value;
        std::memcpy(&value, &bits, sizeof(value));
        if (!(value >= least && value <= most)) // also NaN
            blame(std::string(name) + " " + Number(value) + ": allowed are " + Number(least) + " to " + Number(most));
        return value;
    }
    const std::string &blamed() const { return blamed_; }

private:
    void blame(const std::string &what)
    {
        if (blamed_.empty())
            blamed_ = what;
    }

    std::string_view text_;
    std::string blamed_;
};

} // namespace

std::string EncodeMessage(const Sums &s)
{
    Writer out;
    const auto classes = std::min(s.classes.size(), MostClasses), users = std::min(s.users.size(), MostUsers);
    out.bytes(Magic);
    out.number(static_cast<uint64_t>(Version), 1);
    out.number(classes, 2);
    out.number(users, 2);
    for (const auto value : {s.life, s.number, s.config, s.places, s.waiting, s.queued})
        out.number(value);
    out.real(s.demand);
    for (const auto value : {s.received, s.own, uint64_t{s.metered}})
        out.number(value);
    for (const auto value : {s.limit, s.rate, s.utilisation})
        out.real(value);
    out.number(static_cast<uint64_t>(s.queue));
    for (size_t n = 0; n < classes; ++n) {
        out.number(s.classes[n].key);
        out.number(s.classes[n].served);
        out.real(s.classes[n].demand);
    }
    for (size_t n = 0; n < users; ++n) {
        out.number(s.users[n].key);
        out.number(s.users[n].bytes);
        out.number(s.users[n].waiting, 2);
        out.number(s.users[n].items, 2);
    }
    return out.take();
}

std::optional<Sums> DecodeMessage(const std::string_view text, std::string &why)
{
    if (text.size() < Magic.size() + 1 || text.substr(0, Magic.size()) != Magic) {
        why = "is not a message of msfrs-share";
        return {};
    }
    if (text[Magic.size()] != Version) {
        why = "has version " + std::to_string(static_cast<unsigned char>(text[Magic.size()])) + ", not " +
            std::to_string(Version) + ": another msfrs-share wrote it";
        return {};
    }
    if (text.size() < HeadSize) {
        why = "has " + std::to_string(text.size()) + " bytes, less than the " + std::to_string(HeadSize) + " of a head";
        return {};
    }
    Reader in(text.substr(Magic.size() + 1));
    Sums s;
    const auto classes = in.upTo("classes", MostClasses, 2), users = in.upTo("users", MostUsers, 2);
    const auto size = HeadSize + classes * ClassSize + users * UserSize;
    if (in.blamed().empty() && text.size() != size) {
        why = "has " + std::to_string(text.size()) + " bytes; " + std::to_string(classes) + " classes and " +
            std::to_string(users) + " users take " + std::to_string(size);
        return {};
    }
    if (in.blamed().empty()) {
        s.life = in.number();
        s.number = in.number();
        s.config = in.number();
        s.places = in.upTo("places", MostPlaces);
        s.waiting = in.upTo("waiting", MostWaiting);
        s.queued = in.upTo("queued", MostWaiting);
        s.demand = in.real("demand", 0, MostDemand);
        s.received = in.number();
        s.own = in.number();
        s.metered = in.upTo("metered", 1) != 0;
        s.limit = in.real("limit", 1, static_cast<double>(MostPlaces));
        s.rate = in.real("rate", 0, MostRate);
        s.utilisation = in.real("utilisation", 0, MostUtilisation);
        s.queue = static_cast<int64_t>(in.upTo("queue", MostQueue));
        for (size_t n = 0; n < classes; ++n) {
            const auto key = in.key("a class"), served = in.number();
            s.classes.push_back({key, served, in.real("demand of a class", 0, MostDemand)});
        }
        for (size_t n = 0; n < users; ++n) {
            const auto key = in.key("a user"), bytes = in.number();
            const auto waiting = static_cast<uint16_t>(in.number(2)), items = static_cast<uint16_t>(in.number(2));
            s.users.push_back({key, bytes, waiting, items});
        }
    }
    why = in.blamed();
    if (!why.empty())
        return {};
    return s;
}

} // namespace msfrs::share
