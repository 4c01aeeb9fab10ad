/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_OPTIONS_H
#define SQUID_SRC_MSFRS_OPTIONS_H

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

class ConfigParser;

namespace msfrs::squid
{

/// Where a directive stands in squid.conf, so that a check made after the whole file was read can still name
/// its file and line.
class Place
{
public:
    Place(); ///< of the directive that is being parsed

    /// Stops the parsing. Squid's own "Bungled FILE line N" report names this place, too.
    /// \param sentence what was found and what is allowed
    /// \throws ConfigError
    [[noreturn]] void refuse(const std::string &sentence) const;

    /// logs a harmless mistake
    void warn(const std::string &sentence) const;

    std::string where() const; ///< FILE:LINE

private:
    std::string directive_;
    std::string file_;
    int line_;
    std::string text_;
};

/// A unit of values.
struct Unit {
    const char *name; ///< "" marks a number that needs no unit, nil the end of a list
    double factor; ///< its size in the unit in which values are stored
};

/// An option of a directive: a row of DirectiveTable.h.
struct Spec {
    enum Form {
        Number, ///< with one of the units
        Percent, ///< stored as a share of 1; written with %, or a bare 0
        Count, ///< a whole number
        Interface, ///< the name of a network interface; has no range
        ClassName, ///< likewise
        Word, ///< the name of a unit alone; stored as its factor
        PerPeriod, ///< with one of the units, per hour, day, week or month: 5GB/day
        Flag ///< a word that stands alone
    };

    const char *name; ///< as in name=value; empty for the only value of a directive
    Form form;
    const Unit *units; ///< smallest first
    double min, max; ///< inclusive
    double byDefault; ///< the value without the option; 0 if there is none
    bool required;
    const char *allowed; ///< the allowed values, to complete "... is not allowed; give "
    const char *instead; ///< a word that may stand for a number, stored as 0; or nil
};

/// The rule for names of classes; for messages.
inline constexpr const char *ClassNameRule = "1 to 32 letters, digits, '-', '_' or '.'";
bool ValidClassName(const std::string &);

/// Converts a value. It is accepted as written or refused, never rounded into the range.
/// \returns bit/s, bytes, nanoseconds or whatever the units of the option count, regardless of the period; 0 for a name
/// or a word
/// \throws ConfigError
double Number(const Spec &, const std::string &value, const Place &);

/// name=value; a flag has an empty value
using Option = std::pair<std::string, std::string>;

/// The name=value options and the flags at the end of a directive.
class Options
{
public:
    /// Parses options up to the end of the line and checks names and values.
    /// \param known the options of the directive, in the order in which messages list them, then nil
    /// \throws ConfigError
    Options(ConfigParser &, const Place &, const Spec *const *known);

    bool has(const Spec &spec) const { return find(spec) != nullptr; }

    /// \returns the value converted by Number(), or the default if the option was not given
    double number(const Spec &) const;

    std::string text(const Spec &) const; ///< the value as written; empty if not given

    void print(std::ostream &) const; ///< as written

private:
    struct Given {
        const Spec *spec;
        std::string written; ///< the value
        double number;
    };

    const Given *find(const Spec &) const;

    std::vector<Given> given_;
};

/// Reads the next option or flag of the directive being parsed. One without a value, "name" or "name=", is returned
/// as written.
/// \returns false at the end of the line
/// \throws ConfigError when there is a '=' without a name
bool NextOption(ConfigParser &, const Place &, Option &);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_OPTIONS_H */

