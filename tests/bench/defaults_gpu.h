/* defaults_gpu.h - defaults.h for GPU programs: include it after bench_gpu.h.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef BENCH_DEFAULTS_GPU_H
#define BENCH_DEFAULTS_GPU_H

#include "tests/bench/defaults.h"

#include <algorithm>
#include <functional>

namespace {

struct default_call { const char *name; std::function<void()> work; };

/* How long queueing took at most, in the calls of this row: so long the GPU is kept busy. */
double default_queueing;

double default_turn(void (*)(void *), void *job)
{
    std::function<void()> const &work = static_cast<default_call *>(job)->work;
    double queueing = 0;
    double const ms = sample_ms(
        [&] {
            double const begin = wall_ms();
            work();
            queueing = wall_ms() - begin;
        },
        0.05 + 2 * default_queueing);
    default_queueing = std::max(default_queueing, std::min(queueing, 1.0));
    return ms;
}

/* A row; the first of the calls is the default. */
void defaults_row(const std::string &workload, int64_t n, const char *call,
                  std::vector<default_call> &calls, const char *reason)
{
    std::vector<bench_setting> settings;
    for (default_call &one : calls) settings.push_back({one.name, nullptr, &one, 0});
    default_queueing = 0;
    for (default_call &one : calls) one.work(); /* which allocates */
    must(cudaStreamSynchronize(stream));
    bench_defaults_row(workload.c_str(), n, call, settings.data(),
                       static_cast<int>(settings.size()), default_turn, reason);
}

} // namespace

#endif /* BENCH_DEFAULTS_GPU_H */
