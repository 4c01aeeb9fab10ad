// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The notation of every configuration file but squid.conf: a line of words, most of them FIELD=VALUE, with the units
/// of rates, sizes and times. Files are untrusted: every refusal names file and line, the field, the value and what is
/// allowed.
#ifndef MSFRS_CONFIG_FIELDS_H
#define MSFRS_CONFIG_FIELDS_H

#include "config/address.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

/// A line that is refused; what() has file and line, the field, the value and what is allowed.
class RuleError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

constexpr size_t MostLineLength = 1024;

/// What a terminal can show of a text; '?' stands for the rest.
std::string Printable(std::string_view text);
/// As much of a value as a message can show.
std::string Shown(std::string_view text);
/// The next word of a line, taken off it; empty at its end.
std::string_view NextWord(std::string_view &line);
/// "one, two and three"
std::string Listed(const std::vector<const char *> &names);
/// Digits alone, up to `most`.
std::optional<uint32_t> WholeNumber(std::string_view text, uint32_t most);
/// Whether a name is of letters, digits, '-', '_' and '.', at most MostNameLength of them.
bool GoodName(std::string_view text);
constexpr size_t MostNameLength = 32;

/// The file, open. \throws RuleError
std::ifstream OpenFile(const std::string &path);

/// The lines of a file that hold anything once comments (`#` to the end of the line) are gone.
class Lines {
public:
    /// \param file for messages
    Lines(std::istream &in, std::string file): in_(in), file_(std::move(file)) {}
    /// \returns false at the end of the file \throws RuleError a line too long, or a file that cannot be read
    bool next(std::string_view &line);
    std::string where() const { return file_ + ":" + std::to_string(number_); }
    size_t number() const { return number_; }

private:
    bool read();

    std::istream &in_;
    std::string file_, line_;
    size_t number_ = 0;
};

/// A field as it was given, and the readers of its value. All of them throw RuleError.
struct Field {
    std::string_view name, value;
    const std::string &where;

    /// The value is not allowed: says which, and what is.
    [[noreturn]] void refuse(const std::string &what) const;

    struct AddressRange {
        Family family;
        Range<Address> range;
    };
    struct Prefix : AddressRange {
        unsigned length; ///< bits
    };
    Prefix prefix(const char *allowed = "ADDRESS and ADDRESS/LENGTH") const;
    AddressRange addresses() const; ///< ADDRESS, ADDRESS/LENGTH or FIRST-LAST
    /// FIRST-LAST or one number, up to `most`. \param noun what they are, for messages
    Range<uint32_t> range(uint32_t most, const char *noun) const;
    int64_t rate(int64_t least, int64_t most, const char *allowed) const; ///< bit/s
    int64_t size(int64_t least, int64_t most, const char *allowed) const; ///< bytes
    int64_t time(int64_t least, int64_t most, const char *allowed) const; ///< ns
    int64_t number(int64_t least, int64_t most) const;
    /// A decimal number with nothing behind it but `unit`, which may be empty.
    double decimal(std::string_view unit, double least, double most) const;
    double weight() const { return decimal("", 0.001, 1e6); }
    bool onOff() const;
};

/// The fields of one line.
class Fields {
public:
    /// \param where file and line \param names those that the line may have: literals
    /// \param line FIELD=VALUE...; outlives this
    Fields(std::string where, std::vector<const char *> names, std::string_view line);
    Fields(const Fields &) = delete; ///< what find() gives refers to this

    [[noreturn]] void refuse(const std::string &what) const { throw RuleError(where_ + ": " + what); }
    /// The field, unless it was left out.
    std::optional<Field> find(const char *name) const;
    /// The field, unless it was left out or is `any`.
    std::optional<Field> limiting(const char *name) const;
    /// The field. \param why it must be there, for the refusal
    Field need(const char *name, const std::string &why) const;
    const std::string &where() const { return where_; }

private:
    void add(std::string_view word);

    std::string where_;
    std::vector<const char *> names_;
    std::vector<std::pair<const char *, std::string_view>> given_;
};

} // namespace msfrs

#endif
