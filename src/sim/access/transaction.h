// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One HTTP/1 request at the simulated gateway, forwarded as by Squid on a persistent connection.
#pragma once

#include "sim/access/ticket.h"

namespace msfrs::sim::access {

class Transaction final : public Ticket {
public:
    Transaction(Gateway &, const Wish &, Watcher);

private:
    void forward() override;
    void finish(bool refused) override;
    int64_t rest() const override { return headed_ ? rest_ : -1; }
    int64_t stated() const override { return headed_ && wish_.says ? wish_.says(rest_) : rest(); }
    const char *took(int64_t bytes) override;
    void deliver(int64_t bytes) override;
    void request();

    const Wish wish_;
    Watcher watcher_;
    int64_t rest_;                 ///< of header and body
    bool headed_ = false;          ///< the header has arrived, which states the length
};

} // namespace msfrs::sim::access
