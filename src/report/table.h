// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A report is a few tables. A column states what a figure is; the YAML, the metrics, the sums over workers and the
/// bytes that one worker sends to another are made from it.
#pragma once

#include "report/open_metrics.h"
#include "report/value.h"

namespace msfrs::report {

struct Snapshot;

/// A metric family. Columns of the same name are one family.
struct Metric {
    const char *name = nullptr; ///< null: the column is in no metric
    const char *help = nullptr;
    MetricKind kind = MetricKind::Gauge;
    const char *unit = "";      ///< with which the name ends
    int decimals = 6;
    double scale = 1;           ///< factor from the column's unit
};

/// A figure.
struct Column {
    const char *key;          ///< in YAML; null: not there. Columns "a.b" and "a.c" are fields of one map "a"
    Value (*of)(const Snapshot &, size_t row);
    int decimals = 0;         ///< in YAML
    const char *comment = ""; ///< in YAML; if too long for the line, above it
    Join join = Join::First;
    Metric family = {};
    const char *label = "";   ///< of a key: the label of all samples of its row; empty: none
    const char *part = "";    ///< without a label: the suffix of the sample's name; otherwise the label's value

    constexpr Column note(const char *const text) const { auto c = *this; c.comment = text; return c; }
    constexpr Column joined(const Join how) const { auto c = *this; c.join = how; return c; }
    constexpr Column sum() const { return joined(Join::Sum); }
    constexpr Column most() const { return joined(Join::Most); }
    constexpr Column keyed(const char *const l = "") const { auto c = joined(Join::Key); c.label = l; return c; }
    constexpr Column metric(const Metric &m, const char *const l = "", const char *const p = "") const
    {
        auto c = *this;
        c.family = m;
        c.label = l;
        c.part = p;
        return c;
    }
    constexpr Column gauge(const char *const name, const char *const help, const char *const unit = "",
                           const int places = 6, const double scale = 1) const
    {
        return metric({name, help, MetricKind::Gauge, unit, places, scale});
    }
    constexpr Column counter(const char *const name, const char *const help, const char *const unit = "",
                             const int places = 0) const
    {
        return metric({name, help, MetricKind::Counter, unit, places, 1});
    }
};

/// Columns, and how their rows are printed in YAML.
struct Table {
    /// Lines: a line for each column. Maps: likewise, as a list. Rows: a list with a line for each row.
    enum Style { Lines, Maps, Rows, RowsIfAny };

    template <size_t N>
    constexpr Table(const char *const title, const int indented, const Style s, const Column (&of)[N],
                    size_t (*const count)(const Snapshot &), const size_t most = SIZE_MAX):
        heading(title), indent(indented), style(s), first(of), columns(N), rows(count), shown(most) {}

    const Column *begin() const { return first; }
    const Column *end() const { return first + columns; }
    /// The index of a column.
    size_t at(std::string_view key) const;

    const char *heading; ///< comments and the key
    int indent;          ///< of the heading, columns
    Style style;
    const Column *first;
    size_t columns;
    size_t (*rows)(const Snapshot &);
    size_t shown;        ///< rows in YAML, at most
};

using Row = std::vector<Value>; ///< a value for each column
using Rows = std::vector<Row>;

Rows RowsOf(const Table &, const Snapshot &);

/// Joins the rows of another worker by the keys; rows that match none are appended.
void JoinRows(const Table &, Rows &, const Rows &other);

void PrintYaml(std::ostream &, const Table &, const Rows &);

/// Gauges, then counters, then summaries, each with a sample for each row. A family without samples is left out.
void PrintFamilies(Metrics &, const Table &, const Rows &);

/// Appends rows as bytes, for ReadRows() of the same program.
void WriteRows(std::string &, const Rows &);

/// Takes rows from the front of bytes. \returns false: WriteRows() of the same table has not written them
bool ReadRows(const Table &, std::string_view &bytes, Rows &);

} // namespace msfrs::report
