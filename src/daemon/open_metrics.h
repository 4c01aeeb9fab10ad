// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Writing OpenMetrics, https://prometheus.io/docs/specs/om/open_metrics_spec/
#ifndef MSFRS_DAEMON_OPEN_METRICS_H
#define MSFRS_DAEMON_OPEN_METRICS_H

#include "plugin/number.h"

#include <sstream>
#include <string>

namespace msfrs {

/// One family of metrics, and its samples.
class Metric {
public:
    /// \param name with the program's prefix
    Metric(std::ostringstream &out, std::string name, const char *const type, const std::string &help):
        out_(out), name_(std::move(name))
    {
        out_ << "# TYPE " << name_ << " " << type << "\n# HELP " << name_ << " " << help << "\n";
    }
    void sample(const std::string &labels, const double value, const char *const suffix = "")
    {
        out_ << name_ << suffix << (labels.empty() ? "" : "{" + labels + "}") << " " << Number(value) << "\n";
    }

private:
    std::ostringstream &out_;
    std::string name_;
};

/// \param value of letters, digits, '-', '_' and '.': nothing needs escaping
inline std::string Label(const char *const name, const std::string &value)
{
    return std::string(name) + "=\"" + value + "\"";
}

} // namespace msfrs

#endif
