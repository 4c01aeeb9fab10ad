// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

namespace msfrs::report {

namespace {

constexpr size_t LongestBeside = 80; ///< characters of a comment beside its value; a longer one precedes it

bool SameFamily(const Column &a, const Column &b)
{
    return a.family.name && b.family.name && std::strcmp(a.family.name, b.family.name) == 0;
}

/// The columns [from, to) that have a key, as a map. \param prefix length of what the map does not repeat of the keys
std::string MapOf(const Table &table, const Row &row, const size_t from, const size_t to, const size_t prefix = 0)
{
    std::vector<std::pair<std::string, std::string>> fields;
    for (auto n = from; n < to; ++n) {
        if (const auto &c = table.first[n]; c.key)
            fields.emplace_back(c.key + prefix, row[n].yaml(c.decimals));
    }
    return Map(fields);
}

std::vector<std::string> LinesOf(const std::string &text)
{
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

/// A line for each column; the columns of a map have one together, and a list has more.
/// \param lead the indent of the first line
void PrintLines(std::ostream &out, const Table &table, const Row &row, const std::string &indent, std::string lead)
{
    for (size_t n = 0; n < row.size(); ++n) {
        const auto &c = table.first[n];
        const auto &value = row[n];
        if (!c.key || value.type == Value::Absent)
            continue;
        const bool list = value.type == Value::List, above = list || std::strlen(c.comment) > LongestBeside;
        for (const auto &line : LinesOf(above ? c.comment : ""))
            out << indent << "# " << line << '\n';
        const auto *const dot = std::strchr(c.key, '.');
        const auto length = dot ? static_cast<size_t>(dot - c.key) : std::strlen(c.key);
        out << lead << std::string(c.key, length) << ':';
        if (!list || value.text.empty()) {
            const auto map = n;
            const auto inMap = [&](const Column &other) {
                return dot && other.key && std::strncmp(other.key, c.key, length + 1) == 0;
            };
            while (n + 1 < row.size() && inMap(table.first[n + 1]))
                ++n;
            out << ' ' << (list ? "[]" : dot && value.known() ? MapOf(table, row, map, n + 1, length + 1)
                                                              : value.yaml(c.decimals));
        }
        out << (above || !*c.comment ? "" : " # ") << (above ? "" : c.comment) << '\n';
        for (const auto &line : LinesOf(list ? value.text : ""))
            out << indent << "  - " << line << '\n';
        lead = indent;
    }
}

/// The labels that all samples of a row have, by name.
std::vector<std::string> LabelsOf(const Table &table, const Row &row)
{
    std::vector<std::string> labels;
    for (size_t n = 0; n < row.size(); ++n) {
        const auto &c = table.first[n];
        if (c.join == Join::Key && *c.label && row[n].known())
            labels.push_back(Label(c.label, row[n].type == Value::Whole ? row[n].yaml(0) : row[n].text));
    }
    std::sort(labels.begin(), labels.end());
    return labels;
}

void PrintFamily(Metrics &all, const Table &table, const Rows &rows, const Metric &m, const Column &first)
{
    std::optional<MetricFamily> family;
    for (const auto &row : rows) {
        for (size_t n = 0; n < row.size(); ++n) {
            const auto &c = table.first[n];
            if (!SameFamily(c, first) || !row[n].known())
                continue;
            auto labels = LabelsOf(table, row);
            if (*c.label)
                labels.push_back(Label(c.label, c.part));
            if (!family)
                family.emplace(all.family(m.name, m.kind, m.help, m.unit));
            family->sample(labels, row[n].metric(m.decimals, m.scale), *c.label ? "" : c.part);
        }
    }
}

} // namespace

size_t Table::at(const std::string_view key) const
{
    return static_cast<size_t>(
        std::find_if(begin(), end(), [&](const Column &c) { return c.key && c.key == key; }) - begin());
}

Rows RowsOf(const Table &table, const Snapshot &snapshot)
{
    Rows rows(table.rows(snapshot));
    for (size_t n = 0; n < rows.size(); ++n) {
        for (const auto &c : table)
            rows[n].push_back(c.of(snapshot, n));
    }
    return rows;
}

void JoinRows(const Table &table, Rows &rows, const Rows &other)
{
    for (const auto &more : other) {
        const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row &row) {
            for (size_t n = 0; n < table.columns; ++n) {
                if (table.first[n].join == Join::Key && !(row[n] == more[n]))
                    return false;
            }
            return true;
        });
        if (same == rows.end()) {
            rows.push_back(more);
            continue;
        }
        for (size_t n = 0; n < table.columns; ++n)
            (*same)[n].join(table.first[n].join, more[n]);
    }
}

void PrintYaml(std::ostream &out, const Table &table, const Rows &rows)
{
    const std::string indent(static_cast<size_t>(table.indent), ' ');
    if (rows.empty() && table.style != Table::Rows)
        return;
    if (*table.heading)
        out << table.heading << (rows.empty() ? " []\n" : "\n");
    for (size_t n = 0; n < std::min(rows.size(), table.shown); ++n) {
        if (table.style == Table::Lines)
            PrintLines(out, table, rows[n], indent, indent);
        else if (table.style == Table::Maps)
            PrintLines(out, table, rows[n], indent + "    ", indent + "  - ");
        else
            out << indent << "  - " << MapOf(table, rows[n], 0, table.columns) << '\n';
    }
}

void PrintFamilies(Metrics &all, const Table &table, const Rows &rows)
{
    for (const auto kind : {MetricKind::Gauge, MetricKind::Counter, MetricKind::Summary}) {
        for (const auto &c : table) {
            const auto isSame = [&](const Column &other) { return SameFamily(other, c); };
            if (c.family.name && c.family.kind == kind && std::find_if(table.begin(), &c, isSame) == &c)
                PrintFamily(all, table, rows, c.family, c);
        }
    }
}

void WriteRows(std::string &bytes, const Rows &rows)
{
    Value(rows.size()).write(bytes);
    for (const auto &row : rows) {
        for (const auto &value : row)
            value.write(bytes);
    }
}

bool ReadRows(const Table &table, std::string_view &bytes, Rows &rows)
{
    Value size;
    bool good = size.read(bytes);
    while (good && static_cast<int64_t>(rows.size()) < size.whole) { // not resize(): the size is not to be trusted
        for (auto &value : rows.emplace_back(table.columns))
            good = good && value.read(bytes);
    }
    return good;
}

} // namespace msfrs::report
