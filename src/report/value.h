// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One figure of a report, with its texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace msfrs::report {

/// How the values of two workers are joined. Key: rows with the same key are joined. Known: the first known value.
enum class Join { First, Known, Key, Sum, Most };

/// A number, a truth value or a text.
struct Value {
    /// Absent: not even null. Ratio: its sum has the sums of dividends and divisors. Word: a text that YAML reads as a
    /// string without quotes. List: texts, each on a line of its own.
    enum Type : uint8_t { Absent, Unknown, Truth, Whole, Real, Ratio, Word, Text, List };

    Value(const Type t = Unknown): type(t) {}
    Value(const bool b): type(Truth), whole(b) {}
    template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
    Value(const N n): type(Whole), whole(static_cast<int64_t>(n)) {}
    Value(const double d): type(Real), real(d) {}
    Value(const double of, const double by): type(Ratio), real(of), divisor(by) {}
    Value(std::string s, const Type t = Text): type(t), text(std::move(s)) {}

    bool known() const { return type > Unknown && (type != Ratio || divisor > 0); }
    double number() const;
    void join(Join, const Value &other);
    /// \param decimals of a number that is not whole
    std::string yaml(int decimals) const;
    /// The sample of a metric: true is 1. Whole numbers are not scaled.
    std::string metric(int decimals, double scale = 1) const;
    bool operator==(const Value &other) const { return whole == other.whole && text == other.text; } ///< of keys

    /// Appends it to bytes for read() of the same program.
    void write(std::string &bytes) const;
    /// Takes it from the front of bytes. \returns false: write() has not written them
    bool read(std::string_view &bytes);

    Type type;
    int64_t whole = 0;
    double real = 0, divisor = 0;
    std::string text;
};

/// The number without an exponent, with which YAML would read a string.
std::string Fixed(double number, int decimals);

/// A YAML double-quoted scalar of the text, which should be UTF-8. Characters that YAML does not allow, or that would
/// be invisible, are escaped as \uNNNN. Each byte that is not valid UTF-8 becomes U+FFFD.
std::string Quoted(const std::string &text);

/// A YAML map on one line. \param fields keys, and values as YAML
std::string Map(const std::vector<std::pair<std::string, std::string>> &fields);

} // namespace msfrs::report
