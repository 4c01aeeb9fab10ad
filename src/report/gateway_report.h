// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The report of a gateway that schedules requests: of one process, or of several workers together.
#pragma once

#include "report/faults.h"
#include "report/gateway_tables.h"
#include "report/snapshot.h"

#include <array>

namespace msfrs::report {

class GatewayReport {
public:
    /// Of a process that schedules nothing.
    GatewayReport() = default;
    explicit GatewayReport(const Snapshot &);

    /// Adds the report of another worker. Counts add up: a user with requests at two workers counts at both. Of
    /// quantiles of times held, and of service counters, the largest is kept. The link and the window are the leader's;
    /// workers that do not share the link have one each, for a part of the rate, and their rates, W and W+ add up.
    /// Quotas are the same for all parties on the link, and taken from the first.
    void add(const GatewayReport &);

    /// Adds the report of another link of the same process: a document of its own in YAML, and samples with a label of
    /// their own in the metrics.
    void addLink(const GatewayReport &);

    /// As bytes for Read(); without other links.
    std::string written() const;
    /// \returns a report of nothing if a process of the same program did not write the bytes
    static GatewayReport Read(const std::string &bytes);

    void printYaml(std::ostream &) const;
    /// \param faults of the gateway as a whole
    void printMetrics(std::ostream &, const std::vector<Fault> &faults = {}) const;

private:
    Rows &rows(const Part part) { return parts_[part]; }
    const Rows &rows(const Part part) const { return parts_[part]; }
    bool holds() const { return !rows(State).empty() && rows(State).front().front().number() != 0; }

    bool scheduling_ = false, failed_ = false;
    bool follows_ = false; ///< another worker computes the window
    msfrs_time now_ = 0;   ///< ns, of the latest snapshot
    std::array<Rows, Parts> parts_;
    std::vector<GatewayReport> others_; ///< links
};

/// Users of one process, in YAML.
void PrintUsers(std::ostream &, std::vector<UserReport>);

} // namespace msfrs::report
