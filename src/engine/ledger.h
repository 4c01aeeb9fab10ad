// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The ledger: the counters that several schedulers on one link must agree on. One engine keeps them in its process's
/// memory (LocalLedger); the interface is all that it knows, so that workers, and later gateways, can share one.
/// Schedulers alone write them.
#ifndef MSFRS_ENGINE_LEDGER_H
#define MSFRS_ENGINE_LEDGER_H

#include <cstdint>
#include <deque>

namespace msfrs {

/// Window figures of all who release onto the link.
struct LedgerWindow {
    uint32_t outstanding = 0; ///< W: items released and neither paused nor done
    double limit = 1.0;       ///< W+: how many may be outstanding; real, >= 1
};

class Ledger {
public:
    virtual ~Ledger() = default;
    /// The service counter of class `index`; the address stays valid while the ledger lives.
    virtual double *service(uint32_t index) = 0;
    /// The virtual time that waking classes take.
    virtual double *virtualTime() = 0;
};

/// A ledger of one process.
class LocalLedger final : public Ledger {
public:
    double *service(uint32_t index) override
    {
        while (services_.size() <= index)
            services_.push_back(0.0); // a deque never moves its elements
        return &services_[index];
    }
    double *virtualTime() override { return &virtualTime_; }

private:
    std::deque<double> services_;
    double virtualTime_ = 0.0;
};

} // namespace msfrs

#endif
