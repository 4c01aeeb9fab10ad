// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Measurements of the last hour, in slots of some seconds: a ring for each figure, all of bounded size.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace msfrs::page {

class History {
public:
    struct Shape {
        int64_t step = 5;     ///< s of a slot
        size_t slots = 720;   ///< an hour
        size_t columns = 512; ///< most figures; further ones are ignored
    };
    using Values = std::vector<std::pair<std::string, double>>; ///< by the figure's name; NaN: unknown

    explicit History(Shape shape): shape_(shape) {}

    /// Adds the values measured at a time of the wall clock, s; the mean of each slot is kept. If the clock was set
    /// back, slots that are now in the future are forgotten.
    void add(int64_t now, const Values &);
    /// Advances over slots without measurements.
    void advance(int64_t now);

    /// {"step":, "newest": number of the last slot, "columns": {name: [oldest ... newest]}}
    std::string json() const;
    /// The same of one figure, if it is known.
    std::string json(const std::string &name) const;
    /// {"slot": number of the last slot, "values": {name: mean}}
    std::string newestJson() const;

    /// Writes everything as text for load().
    void save(std::ostream &) const;
    /// Reads the output of save(); slots that are too old, or in the future, are left out.
    /// \throws std::runtime_error with the line if it is invalid; the history is then unchanged
    void load(std::istream &, int64_t now);

    const Shape &shape() const { return shape_; }
    /// The means of a figure, oldest slot first, NaN if unknown; empty: there is no such figure.
    std::vector<float> column(const std::string &name) const;

    int64_t newest() const { return newest_; }
    size_t columns() const { return rings_.size(); }

private:
    struct Ring {
        std::vector<float> means; ///< slot n is at n % slots; NaN: unknown
        double sum = 0;           ///< of the newest slot
        unsigned count = 0;
    };

    size_t place(const int64_t slot) const { return static_cast<size_t>(slot) % shape_.slots; }
    std::string json(const std::map<std::string, Ring> &of) const;
    void clear(Ring &, int64_t first, int64_t last) const;
    void moveTo(int64_t slot);
    Ring *ring(const std::string &name);

    Shape shape_;
    int64_t newest_ = 0; ///< slot; 0: no measurement yet
    std::map<std::string, Ring> rings_;
};

} // namespace msfrs::page
