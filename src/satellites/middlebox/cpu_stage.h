// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The processor as a resource that packets visit before the link: the execution of functions, and their share of the
/// processor's time.
///
/// The share leaves the order to the scheduler. A thread that spent all its time on functions would not read its queue,
/// and the kernel would drop packets before any scheduler has seen them. The share is enforced by the measured time of
/// functions; the scheduler uses the estimate, which it needs in advance.
#pragma once

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
    unsigned passes = 1;     ///< times it processes each packet, 1..MostPasses: emulates a slower processor
    FunctionOptions options; ///< CpuStage sets `random`
    size_t cls = 0;          ///< the class whose packets it processes: index into edge::Config::classes
};

struct CpuConfig {
    static constexpr double LeastShare = 0.001;

    std::vector<FunctionConfig> functions; ///< at most one per class
    double share = 0.5; ///< of a processor, LeastShare..1

    /// Time a packet keeps the processor's share busy, in the unit of msfrs_item::est.
    int64_t estimate(size_t function, size_t bytes) const;
};

/// Usage of a function by packets.
struct FunctionUse {
    uint64_t packets = 0, bytes = 0;
    uint64_t estimated = 0, measured = 0; ///< ns of processor time; with absurd estimates the sum may wrap
};

class CpuStage {
public:
    /// \param random see FunctionOptions::random \param cpu nanoseconds of processor time used by this thread
    CpuStage(const CpuConfig &, const std::function<uint64_t()> &random, std::function<int64_t()> cpu, int64_t now);

    /// Whether the processor's share is free; if not, it becomes free at next().
    bool ready(const int64_t now) const { return pacer_.ready(now); }
    int64_t next() const { return pacer_.next(); }
    /// A packet arrives after a time without any, which is not compensated.
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
    edge::Pacer pacer_; ///< one byte stands for a nanosecond of processor time
};

} // namespace msfrs::middlebox
