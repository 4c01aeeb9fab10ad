// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The paper's law (`msfrs_window law=paper`, and without quanta): a request is released while W < W+, a number of
/// responses (PaperWindow, equations 2 and 3). It has neither q* nor lag.
#include "engine/request_state.h"

#include <cstdio>

namespace msfrs {

class RequestScheduler::Impl::PaperLaw final : public Law {
public:
    using Law::Law;

    bool open() const override { return self.paper.open(self.outstanding()); }
    bool within() const override { return self.paper.within(self.outstanding()); }
    bool openForFresh() const override { return self.paper.open(self.outstanding(), self.windowParams.reserve); }
    double limit() const override { return self.paper.limit(); }
    double elsewhere() const override { return self.others->places; }
    uint32_t part() const override { return static_cast<uint32_t>(self.inService()); }
    double whole() const override { return self.paper.limit(); }

    void follow(const SharedWindow *const led) override
    {
        if (led)
            self.paper.follow(led->limit);
        else
            self.paper.lead();
    }

    std::string text() const override
    {
        char text[80];
        std::snprintf(text, sizeof(text), "W is %.0f of W+ %.2f", self.outstanding(), self.paper.limit());
        return text;
    }
};

std::unique_ptr<RequestScheduler::Impl::Law> RequestScheduler::Impl::makePaperLaw()
{
    return std::make_unique<PaperLaw>(*this);
}

} // namespace msfrs
