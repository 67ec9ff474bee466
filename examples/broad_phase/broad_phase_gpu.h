/* broad_phase_gpu.h - what broad_phase.cu needs besides its searches: device memory, timed runs,
   the check.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef BROAD_PHASE_GPU_H
#define BROAD_PHASE_GPU_H

#include "../common/gpu.h"

namespace {

/* As bp_list, in device memory. */
struct bp_device_list {
    int32_t *ids;               /* [2 * room] */
    int64_t room;
    unsigned long long *count;
};

/* Everything a run needs. */
struct bp_gpu {
    const bp_scene *scene;
    cudaStream_t stream;
    gpu_events<3> events;       /* begin, built, end */
    bp_sphere *d_sphere;
    bp_box *d_box, *d_near_box;     /* by id, by place of the grid */
    unsigned long long *d_count;    /* pairs, tests */
    bp_device_list list;
    ugrid_cuda grid;
    lbvh_cuda tree;
};

bp_gpu bp_gpu_new(const bp_scene *scene)
{
    bp_gpu run = {};
    run.scene = scene;
    run.stream = gpu_stream();
    run.events.create();
    run.d_sphere = gpu_array<bp_sphere>(static_cast<size_t>(scene->n));
    run.d_box = gpu_array<bp_box>(static_cast<size_t>(scene->n));
    run.d_near_box = gpu_array<bp_box>(static_cast<size_t>(scene->n));
    run.d_count = gpu_array<unsigned long long>(2);
    run.list.count = run.d_count;
    gpu_upload(run.d_sphere, scene->sphere, static_cast<size_t>(scene->n), run.stream);
    return run;
}

void bp_gpu_free(bp_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    lbvh_cuda_free(&run->tree);
    void *const memory[] = {run->d_sphere, run->d_box, run->d_near_box, run->d_count,
                            run->list.ids};
    for (void *block : memory) gpu_free(block);
    run->events.destroy();
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
}

/* Brings one of the two counters to the host. */
int64_t bp_fetch_count(bp_gpu *run, int k)
{
    unsigned long long count = 0;
    gpu_download(&count, run->d_count + k, static_cast<size_t>(1), run->stream);
    gpu_wait(run->stream);
    return static_cast<int64_t>(count);
}

void bp_device_room(bp_gpu *run, int64_t pairs)
{
    if (run->list.ids) gpu_free(run->list.ids);
    run->list.ids = gpu_array<int32_t>(static_cast<size_t>(2 * pairs));
    run->list.room = pairs;
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* As bp_run: the first run finds out how much room the pairs need, and is not timed. */
template <class Build, class Search>
bp_result bp_gpu_run(bp_gpu *run, int32_t runs, Build build, Search search)
{
    double *const building =
        static_cast<double *>(zeros(static_cast<size_t>(runs), sizeof(double)));
    double *const searching =
        static_cast<double *>(zeros(static_cast<size_t>(runs), sizeof(double)));
    bp_list list = {};
    bp_result result = {};
    build();
    search();
    result.pairs = bp_fetch_count(run, 0);
    bp_device_room(run, result.pairs);
    for (int32_t k = 0; k < runs; k++) {
        run->events.record(0, run->stream);
        build();
        run->events.record(1, run->stream);
        search();
        run->events.record(2, run->stream);
        if (bp_fetch_count(run, 0) != result.pairs)
            stop(1, "two runs found different numbers of pairs");
        building[k] = 1e3 * run->events.seconds(0, 1);
        searching[k] = 1e3 * run->events.seconds(1, 2);
    }
    bp_make_room(&list, result.pairs);
    gpu_download(list.ids, run->list.ids, static_cast<size_t>(2 * result.pairs), run->stream);
    gpu_wait(run->stream);
    result.hash = bp_hash(list.ids, result.pairs);
    result.build_ms = median(building, runs);
    result.pairs_ms = median(searching, runs);
    free(list.ids);
    free(building);
    free(searching);
    return result;
}

/* -------------------------------------------------------------------------------------------------
   >>check: the serial code makes the same tree, and finds the same pairs
   ---------------------------------------------------------------------------------------------- */

bool bp_reference_agrees(const bp_scene *scene, const lbvh *tree, const bp_result *by_tree)
{
    bp_tree serial = {};
    serial.scene = scene;
    bp_result const expected = bp_run(1, &serial, bp_tree_build, bp_tree_pairs);
    size_t const nodes = 2 * static_cast<size_t>(scene->n) - 1;
    bool const same_tree = tree->n == scene->n &&
                           memcmp(tree->node, serial.tree.node, nodes * sizeof *tree->node) == 0;
    bool const same_pairs = bp_same(&expected, by_tree) != 0;
    printf("reference_pairs %lld\n", static_cast<long long>(expected.pairs));
    printf("reference_hash %016llx\n", static_cast<unsigned long long>(expected.hash));
    printf("reference_same_tree %d\nreference_agrees %d\n", same_tree, same_tree && same_pairs);
    lbvh_free(&serial.tree);
    return same_tree && same_pairs;
}

} // namespace

#endif /* BROAD_PHASE_GPU_H */
