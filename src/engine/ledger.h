// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The ledger: what several schedulers on one link must agree on. One worker keeps it in its own memory
/// (LocalLedger); the interface is all that the engine and the window know, so that workers, and later
/// gateways, can share one.
#ifndef MSFRS_ENGINE_LEDGER_H
#define MSFRS_ENGINE_LEDGER_H

#include <cstdint>
#include <deque>

namespace msfrs {

/// Window figures shared by all who release onto the link.
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
    virtual LedgerWindow &window() = 0;
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
    LedgerWindow &window() override { return window_; }

private:
    std::deque<double> services_;
    double virtualTime_ = 0.0;
    LedgerWindow window_;
};

} // namespace msfrs

#endif
