/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_METRICSPAGE_H
#define SQUID_SRC_MSFRS_METRICSPAGE_H

#include <iosfwd>
#include <string>
#include <vector>

namespace msfrs::squid
{

/// Joins the metrics of several processes. In OpenMetrics, everything of a metric family stands together below one
/// description, and the text ends once.
class MetricsPage
{
public:
    /// adds what PrintMetrics() wrote in some process
    void add(const std::string &families);

    void print(std::ostream &) const;

private:
    struct Family {
        std::string type; ///< the line "# TYPE name type"
        std::string description; ///< the lines between that and the samples
        std::string samples;
    };

    std::vector<Family> families_; ///< in the order in which they came first
};

/// Puts text into a file without a name, to be sent to another process.
/// \returns its descriptor, which the caller closes, or -1
int TextToFile(const std::string &);

/// \param fd of TextToFile(), perhaps in another process; will be closed
std::string TextFromFile(int fd);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_METRICSPAGE_H */

