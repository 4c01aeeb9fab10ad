// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The processor as a resource that packets visit before the link: the functions at work, and how much of the
/// processor's time they may have.
///
/// The share is what keeps the order the scheduler's. A thread that spent all its time on functions would not read
/// its queue, and the kernel would drop packets before any scheduler has seen them. It is kept by the time that
/// functions really take; what the scheduler weighs is the estimate, which it must have beforehand.
#ifndef MSFRS_MIDDLEBOX_CPU_STAGE_H
#define MSFRS_MIDDLEBOX_CPU_STAGE_H

#include "satellites/middlebox/function.h"
#include "satellites/middlebox/processing_time.h"
#include "edge/pacer.h"

#include <functional>
#include <memory>
#include <vector>

namespace msfrs::middlebox {

struct FunctionConfig {
    static constexpr unsigned MostPasses = 10'000;

    const FunctionKind *kind = nullptr;
    ProcessingTime time;     ///< of one pass
    unsigned passes = 1;     ///< how often it processes each packet, 1..MostPasses: a slower processor on a faster one
    FunctionOptions options; ///< `random` is given by CpuStage
    size_t cls = 0;          ///< the class whose packets it processes: index into edge::Config::classes
};

struct CpuConfig {
    static constexpr double LeastShare = 0.001;

    std::vector<FunctionConfig> functions; ///< at most one of a class
    double share = 0.5; ///< of a processor, LeastShare..1

    /// How long a packet keeps the processor's share busy, in the unit of msfrs_item::est.
    int64_t estimate(size_t function, size_t bytes) const;
};

/// What packets have had of a function.
struct FunctionUse {
    uint64_t packets = 0, bytes = 0;
    uint64_t estimated = 0, measured = 0; ///< ns of processor time; with absurd estimates the sum may wrap
};

class CpuStage {
public:
    /// \param random see FunctionOptions::random \param cpu nanoseconds of processor time that this thread has had
    CpuStage(const CpuConfig &, const std::function<uint64_t()> &random, std::function<int64_t()> cpu, int64_t now);

    /// Whether the processor's share is free; if not, it is at next().
    bool ready(const int64_t now) const { return pacer_.ready(now); }
    int64_t next() const { return pacer_.next(); }
    /// A packet comes after a time without any: that time is not made up for.
    void wake(const int64_t now) { pacer_.wake(now); }
    /// Executes a function for a packet, as often as it is configured to.
    void process(size_t function, const FunctionInput &, int64_t now);

    const FunctionUse &use(const size_t function) const { return at_[function].use; }
    const Function &function(const size_t function) const { return *at_[function].function; }

private:
    struct Work {
        std::unique_ptr<Function> function;
        ProcessingTime time;
        unsigned passes;
        FunctionUse use;
    };

    std::vector<Work> at_; ///< as in CpuConfig::functions
    std::function<int64_t()> cpu_;
    edge::Pacer pacer_; ///< its bytes are nanoseconds of processor time
};

} // namespace msfrs::middlebox

#endif
