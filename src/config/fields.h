// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The syntax of every configuration file but squid.conf: a line of words, most of them FIELD=VALUE, with units for
/// rates, sizes and times. Files are untrusted: every error message has file and line, the field, the value and what
/// is allowed.
#pragma once

#include "config/address.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs {

/// A rejected line; what() has file and line, the field, the value and what is allowed.
class RuleError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

constexpr size_t MostLineLength = 1024; ///< characters; a file with a longer line is refused

/// The printable characters of a text; '?' replaces the others.
std::string Printable(std::string_view text);
/// A value, printable and truncated for a message.
std::string Shown(std::string_view text);
/// Removes the next word from a line; empty at its end.
std::string_view NextWord(std::string_view &line);
/// "one, two and three"
std::string Listed(const std::vector<const char *> &names);
/// Parses a number of digits alone, up to `most`.
std::optional<uint32_t> WholeNumber(std::string_view text, uint32_t most);
/// Whether a name is of letters, digits, '-', '_' and '.', at most MostNameLength of them.
bool GoodName(std::string_view text);
constexpr size_t MostNameLength = 32; ///< characters, as the ledger's directory has for the name of a class

/// Opens a file. \throws RuleError
std::ifstream OpenFile(const std::string &path);

/// The lines of a file that are not empty after removing comments (`#` to the end of the line).
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

/// A field as given, and parsers of its value. All of them throw RuleError.
struct Field {
    std::string_view name, value;
    const std::string &where;

    /// Rejects the value; `what` has what is allowed.
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
    /// FIRST-LAST or one number, up to `most`. \param noun for messages
    Range<uint32_t> range(uint32_t most, const char *noun) const;
    int64_t rate(int64_t least, int64_t most, const char *allowed) const; ///< bit/s
    int64_t size(int64_t least, int64_t most, const char *allowed) const; ///< bytes
    int64_t time(int64_t least, int64_t most, const char *allowed) const; ///< ns
    int64_t number(int64_t least, int64_t most) const;
    /// A decimal number followed only by `unit`, which may be empty.
    double decimal(std::string_view unit, double least, double most) const;
    double weight() const { return decimal("", 0.001, 1e6); }
    bool onOff() const;
};

/// The fields of one line.
class Fields {
public:
    /// \param where file and line \param names the allowed fields, string literals
    /// \param line FIELD=VALUE...; outlives this
    Fields(std::string where, std::vector<const char *> names, std::string_view line);
    Fields(const Fields &) = delete; ///< results of find() refer to this

    [[noreturn]] void refuse(const std::string &what) const { throw RuleError(where_ + ": " + what); }
    /// The field, if given.
    std::optional<Field> find(const char *name) const;
    /// The field, if given and not `any`.
    std::optional<Field> limiting(const char *name) const;
    /// The field, which must be given. \param why for the error message
    Field need(const char *name, const std::string &why) const;
    /// Reads a field, if given: read("mtu", mtu, &Field::size, 576, 65535, "576B to 65535B").
    template <class To, class Value, class... Parameters, class... Arguments>
    void read(const char *name, To &to, Value (Field::*parse)(Parameters...) const, Arguments... arguments) const
    {
        if (const auto field = find(name))
            to = static_cast<To>(((*field).*parse)(arguments...));
    }

private:
    void add(std::string_view word);

    std::string where_;
    std::vector<const char *> names_;
    std::vector<std::pair<const char *, std::string_view>> given_;
};

} // namespace msfrs
