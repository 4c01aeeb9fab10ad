/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_OPTIONS_H
#define SQUID_SRC_MSFRS_OPTIONS_H

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

class ConfigParser;

namespace Msfrs
{

/// Where a directive stands in squid.conf, so that a check made after the whole file was read can still name
/// its file and line.
class Place
{
public:
    Place(); ///< of the directive that is being parsed

    /// Stops the parsing. Squid's own "Bungled FILE line N" report names this place, too.
    /// \param sentence what was found and what is allowed
    /// \throws msfrs::ConfigError
    [[noreturn]] void refuse(const std::string &sentence) const;

    /// logs a mistake that does no harm
    void warn(const std::string &sentence) const;

    std::string where() const; ///< FILE:LINE

private:
    std::string directive_;
    std::string file_;
    int line_;
    std::string text_;
};

/// What the value of an option may be. Numbers are kept in the unit named at each kind.
struct Spec {
    enum Kind {
        Rate, ///< bit/s; written with bit, kbit, Mbit or Gbit (powers of 1000)
        Size, ///< bytes; written with bytes, KB, MB or GB (powers of 1024, as everywhere in squid.conf)
        Time, ///< nanoseconds; written with ms, s, min or h
        Percent, ///< a share of 1; written with %, or a bare 0
        Real, ///< a plain number
        Count, ///< a whole number
        Interface ///< the name of a network interface; has no range
    };

    const char *name; ///< as in name=value
    Kind kind;
    double min, max; ///< inclusive, in the unit of the kind
    const char *example; ///< a value as an administrator would write it
};

/// the text of the allowed values, to finish "... is not allowed; give "
std::string Allowed(const Spec &);

/// Converts a value. It is taken as written or refused, never rounded into the range.
/// \param shown how to name the value in a message, for example "rate=20"
/// \param orElse what else would do, for example "none or "
/// \throws msfrs::ConfigError
double Number(const Spec &, const std::string &value, const std::string &shown, const Place &,
              const std::string &orElse = "");

/// name=value; a flag has an empty value
using Option = std::pair<std::string, std::string>;

/// The name=value options and the flags at the end of a directive, as written.
class Options
{
public:
    /// Reads them up to the end of the line and checks names and values.
    /// \param known the options of the directive, in the order in which messages list them
    /// \param flag a word that may stand among them, or nil
    /// \throws msfrs::ConfigError
    Options(ConfigParser &, const Place &, const std::vector<Spec> &known, const char *flag = nullptr);

    bool has(const char *name) const { return find(name) != nullptr; }

    /// \returns the value in the unit of its kind, or otherwise if the option was not given
    double number(const char *name, double otherwise) const;

    std::string text(const char *name) const; ///< the value as written; empty if not given

    /// refuses a directive without the option
    void require(const char *name) const;

    void print(std::ostream &) const;

private:
    const std::string *find(const char *name) const;
    const Spec *spec(const std::string &name) const;
    std::string names() const;

    Place place_;
    std::vector<Spec> known_;
    const char *flag_;
    std::vector<Option> given_;
};

/// Reads the next option or flag of the directive being parsed. One without a value, "name" or "name=", comes as
/// it is written.
/// \returns false at the end of the line
/// \throws msfrs::ConfigError when there is a '=' without a name
bool NextOption(ConfigParser &, const Place &, Option &);

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_OPTIONS_H */

