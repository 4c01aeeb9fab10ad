// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Common parts of the packet benchmarks: plugins of the build, memory, and a main program with a summary at the end.
#pragma once

#include "engine/engine.h"

#include <benchmark/benchmark.h>

#include <malloc.h>
#include <string>
#include <vector>

namespace msfrs::bench {

/// Bytes allocated by malloc.
inline size_t InUse() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/// A plugin of the build. \param name null: none
inline Engine::Part Load(const char *const name, const msfrs_kind kind, const std::vector<Setting> &settings = {})
{
    Engine::Part part;
    if (name) {
        part.plugin = LoadPlugin(name, kind, TEST_PLUGIN_DIR);
        part.params = ParseParams(part.plugin->ops(), settings);
    }
    return part;
}

/// Whether a run is a single measurement, as opposed to an aggregate or a failure.
inline bool Measured(const benchmark::BenchmarkReporter::Run &run)
{
    return run.run_type == benchmark::BenchmarkReporter::Run::RT_Iteration && !run.error_occurred;
}

/// Runs what `registerAll` has registered and lets Reporter summarise it.
/// \returns the program's exit code
template <class Reporter, class Register>
int Run(int argc, char **argv, const Register &registerAll)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    registerAll();
    Reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    reporter.summary();
    return 0;
}

} // namespace msfrs::bench
