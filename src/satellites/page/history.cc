// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/history.h"

#include "satellites/page/json.h"
#include "satellites/page/utf8.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <limits>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace msfrs::page {

namespace {

constexpr float Unknown = std::numeric_limits<float>::quiet_NaN();
constexpr const char *Heading = "msfrs-page history 1";
constexpr size_t MostLine = 1 << 20; ///< characters of a saved figure

/// std::getline() for a file that may be anything.
bool BoundedLine(std::istream &in, std::string &line)
{
    line.clear();
    for (int c; (c = in.get()) != std::char_traits<char>::eof() && c != '\n';) {
        if (line.size() == MostLine)
            throw std::runtime_error("too long");
        line += static_cast<char>(c);
    }
    return !line.empty() || !in.eof();
}

float ReadMean(const std::string &word)
{
    if (word == "-")
        return Unknown;
    size_t used = 0;
    float mean = Unknown;
    try {
        mean = std::stof(word, &used);
    } catch (const std::logic_error &) {
    }
    if (used != word.size() || !std::isfinite(mean))
        throw std::runtime_error("not a number");
    return mean;
}

} // namespace

void History::clear(Ring &ring, const int64_t first, const int64_t last) const
{
    const auto most = first + static_cast<int64_t>(shape_.slots) - 1;
    for (auto slot = first; slot <= std::min(last, most); ++slot)
        ring.means[place(slot)] = Unknown;
    ring.sum = 0;
    ring.count = 0;
}

void History::moveTo(const int64_t slot)
{
    if (slot == newest_)
        return;
    for (auto at = rings_.begin(); at != rings_.end();) {
        // Forwards: the slots that begin now. Backwards: those that are now in the future.
        clear(at->second, std::min(slot, newest_) + 1, std::max(slot, newest_));
        const auto &means = at->second.means;
        const bool empty = std::all_of(means.begin(), means.end(), [](const float mean) { return std::isnan(mean); });
        at = empty ? rings_.erase(at) : std::next(at);
    }
    newest_ = slot;
}

void History::advance(const int64_t now)
{
    if (newest_ > 0 && now > 0)
        moveTo(now / shape_.step);
}

History::Ring *History::ring(const std::string &name)
{
    const auto found = rings_.find(name);
    if (found != rings_.end())
        return &found->second;
    if (rings_.size() == shape_.columns)
        return nullptr;
    auto &made = rings_[name];
    made.means.assign(shape_.slots, Unknown);
    return &made;
}

void History::add(const int64_t now, const Values &values)
{
    if (now <= 0)
        return;
    moveTo(now / shape_.step);
    for (const auto &[name, value] : values) {
        auto *const r = std::isfinite(value) ? ring(name) : nullptr;
        if (!r)
            continue;
        r->sum += value;
        r->means[place(newest_)] = static_cast<float>(r->sum / ++r->count);
    }
}

std::vector<float> History::column(const std::string &name) const
{
    std::vector<float> means;
    const auto found = rings_.find(name);
    for (size_t n = 1; found != rings_.end() && n <= shape_.slots; ++n)
        means.push_back(found->second.means[place(newest_ + static_cast<int64_t>(n))]);
    return means;
}

std::string History::json() const { return json(rings_); }

std::string History::json(const std::string &name) const
{
    const auto found = rings_.find(name);
    return json(found == rings_.end() ? std::map<std::string, Ring>() : std::map<std::string, Ring>{*found});
}

std::string History::json(const std::map<std::string, Ring> &of) const
{
    Json json;
    json.object().key("step").whole(shape_.step).key("newest").whole(newest_).key("columns").object();
    for (const auto &[name, _] : of) {
        json.key(name).array();
        for (const auto mean : column(name))
            json.number(mean);
        json.end(']');
    }
    return json.end('}').end('}').take();
}

std::string History::newestJson() const
{
    Json json;
    json.object().key("slot").whole(newest_).key("values").object();
    for (const auto &[name, r] : rings_)
        json.key(name).number(r.means[place(newest_)]);
    return json.end('}').end('}').take();
}

void History::save(std::ostream &out) const
{
    out << Heading << "\nstep " << shape_.step << " slots " << shape_.slots << " newest " << newest_ << '\n';
    for (const auto &[name, _] : rings_) {
        out << PercentEncoded(name);
        for (const auto mean : column(name)) {
            out << ' ';
            if (std::isnan(mean))
                out << '-';
            else
                out << JsonNumber(mean);
        }
        out << '\n';
    }
    out << "end\n";
}

void History::load(std::istream &in, const int64_t now)
{
    size_t number = 0;
    History taken(shape_);
    try {
        std::string line, word;
        const auto next = [&] {
            ++number;
            if (!BoundedLine(in, line))
                throw std::runtime_error("ends too early");
        };
        next();
        if (line != Heading)
            throw std::runtime_error("not a history of this version");
        next();
        Shape shape;
        std::istringstream head(line);
        std::string step, slots, newest;
        if (!(head >> step >> shape.step >> slots >> shape.slots >> newest >> taken.newest_) || step != "step" ||
            slots != "slots" || newest != "newest" || !(head >> std::ws).eof())
            throw std::runtime_error("no heading");
        if (shape.step != shape_.step || shape.slots != shape_.slots)
            throw std::runtime_error("slots of another length or number");
        if (taken.newest_ < 0 || taken.newest_ > INT64_MAX / 2 / shape_.step)
            throw std::runtime_error("an impossible time");
        for (next(); line != "end"; next()) {
            std::istringstream words(line);
            words >> word;
            const auto name = PercentDecoded(word);
            if (!name)
                throw std::runtime_error("a name with a wrong escape");
            auto *const r = taken.ring(*name);
            if (!r)
                throw std::runtime_error("more figures than are kept");
            for (size_t n = 1; n <= shape_.slots; ++n) {
                if (!(words >> word))
                    throw std::runtime_error("too few slots");
                r->means[place(taken.newest_ + static_cast<int64_t>(n))] = ReadMean(word);
            }
            if (words >> word)
                throw std::runtime_error("too many slots");
        }
    } catch (const std::runtime_error &error) {
        throw std::runtime_error("line " + std::to_string(number) + ": " + error.what());
    }
    taken.advance(now);
    *this = std::move(taken);
}

} // namespace msfrs::page
