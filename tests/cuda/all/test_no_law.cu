/* test_no_law.cu - NBODY_FUNCTION on a GPU where the kernels were compiled without a function. Each
   call refuses it, and the object stays usable.
   SPDX-License-Identifier: MIT OR Unlicense

   Run by tests/emu alone: what refuses is host code. test_nbody.cu has the same with functions. */

#define NBODY_WITH_STEP
#define NBODY_WITH_FUNCTION
#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "nbody.h"
#define TESTED nbody
#include "../testing.h"

static const int n = 40;

static double force(double d, void *) { return 1 / (1 + d); }
static double potential(double d, void *) { return std::log1p(d); }

struct Bodies {
    std::vector<real> on_host;
    Device<real> pos{2 * n}, vel{2 * n}, acc{2 * n};
    Bodies()
    {
        for (int i = 0; i < 2 * n; i++) on_host.push_back((real)((i * 37) % 101) / 101);
        pos.set(on_host);
    }
};

/* The object still works: a law of the header's own, after the refusal. */
static void check_works(nbody_cuda *gpu, const Bodies &b)
{
    nbody_desc d = {};
    d.method = NBODY_DIRECT;
    CHECK_RESULT(nbody_cuda_accelerations(gpu, &d, b.pos.p, 0, nullptr, n, b.acc.p, 0), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(gpu, nullptr, 0), NBODY_OK);
}

static void test_refused()
{
    for (int k = 0; k < 4; k++) {
        Bodies const b;
        nbody_cuda gpu = {};
        nbody_bodies bodies = {b.pos.p, b.vel.p, b.acc.p, nullptr, n, 0};
        nbody_desc d = {};
        d.law = NBODY_FUNCTION;
        d.function.force = force;
        if (k & 1) d.function.potential = potential;
        d.method = k & 2 ? NBODY_DIRECT : NBODY_FORCE_NODES;
        CHECK_RESULT(nbody_cuda_reserve(&gpu, &d, n, 0), NBODY_BAD_OPTION);
        CHECK_RESULT(nbody_cuda_build(&gpu, &d, b.pos.p, 0, nullptr, n, 0), NBODY_BAD_OPTION);
        CHECK_RESULT(nbody_cuda_accelerations(&gpu, &d, b.pos.p, 0, nullptr, n, b.acc.p, 0),
            NBODY_BAD_OPTION);
        CHECK_RESULT(nbody_cuda_step(&gpu, &d, &bodies, 1, NBODY_EULER, 0), NBODY_BAD_OPTION);
        CHECK(!gpu.device.sim.frame);
        check_works(&gpu, b);
        nbody_cuda_free(&gpu);
    }
}

/* A tree that was made on the host with such a law. */
static void test_upload_refused()
{
    Bodies const b;
    nbody host = {};
    nbody_cuda gpu = {};
    nbody_desc d = {};
    d.law = NBODY_FUNCTION;
    d.function.force = force;
    CHECK_RESULT(nbody_build(&host, &d, b.on_host.data(), 0, nullptr, n), NBODY_OK);
    CHECK_RESULT(nbody_cuda_upload(&gpu, &host, 0), NBODY_BAD_OPTION);
    check_works(&gpu, b);
    nbody_cuda_free(&gpu);
    nbody_free(&host);
}

static const Test tests[] = {
    {"refused", test_refused},
    {"upload refused", test_upload_refused},
};

int main(int argc, char **argv)
{
    read_options(argc, argv, {});
    return run_tests(tests);
}
