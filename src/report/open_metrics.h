// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Writing OpenMetrics 1.0, which parsers of Prometheus's older text format read, too:
/// https://prometheus.io/docs/specs/om/open_metrics_spec/
#pragma once

#include "plugin/number.h"

#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

namespace msfrs {

enum class MetricKind { Gauge, Counter, Summary, Histogram };

using Labels = std::vector<std::string>; ///< from Label()

/// A label and its value, escaped.
inline std::string Label(const std::string &name, const std::string &value)
{
    auto text = name + "=\"";
    for (const char c : value) {
        if (c == '"' || c == '\\')
            text += '\\';
        text += c == '\n' ? "\\n" : std::string(1, c);
    }
    return text + '"';
}

/// One metric family, and its samples.
class MetricFamily {
public:
    /// \param unit with which the name ends; empty: not stated
    MetricFamily(std::ostream &out, std::string name, const MetricKind kind, const std::string &help,
                 const std::string &unit):
        out_(out), name_(std::move(name)), total_(kind == MetricKind::Counter ? "_total" : "")
    {
        constexpr const char *Kinds[] = {"gauge", "counter", "summary", "histogram"};
        out_ << "# TYPE " << name_ << ' ' << Kinds[static_cast<size_t>(kind)] << '\n';
        if (!unit.empty())
            out_ << "# UNIT " << name_ << ' ' << unit << '\n';
        out_ << "# HELP " << name_ << ' ' << help << '\n';
    }
    /// \param suffix of the parts of a summary or histogram
    void sample(const Labels &labels, const std::string &value, const std::string &suffix = "")
    {
        out_ << name_ << (suffix.empty() ? total_ : suffix);
        for (size_t n = 0; n < labels.size(); ++n)
            out_ << (n == 0 ? '{' : ',') << labels[n];
        out_ << (labels.empty() ? " " : "} ") << value << '\n';
    }
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
    void sample(const Labels &labels, const N value, const std::string &suffix = "")
    {
        sample(labels, Number(static_cast<double>(value)), suffix);
    }

private:
    std::ostream &out_;
    std::string name_, total_;
};

/// All metrics of a program.
class Metrics {
public:
    /// \param prefix of all names
    Metrics(std::ostream &out, std::string prefix): out_(out), prefix_(std::move(prefix)) {}

    MetricFamily family(const std::string &name, const MetricKind kind, const std::string &help,
                        const std::string &unit = "")
    {
        return {out_, prefix_ + name, kind, help, unit};
    }
    template <class N>
    void gauge(const std::string &name, const std::string &help, const N value)
    {
        family(name, MetricKind::Gauge, help).sample({}, value);
    }
    template <class N>
    void counter(const std::string &name, const std::string &help, const N value)
    {
        family(name, MetricKind::Counter, help).sample({}, value);
    }
    void end() { out_ << "# EOF\n"; }

private:
    std::ostream &out_;
    std::string prefix_;
};

} // namespace msfrs
