/* broad_phase_sweep_gpu.h - sort and sweep, for broad_phase.cu: a radix sort, and a thread for each
   box.
   SPDX-License-Identifier: MIT OR Unlicense

   The threads of a warp wait for the one whose box meets most: a large sphere among small ones
   (source 003: "execution divergence"). */

#ifndef BROAD_PHASE_SWEEP_GPU_H
#define BROAD_PHASE_SWEEP_GPU_H

#include <cub/cub.cuh>

namespace {

struct bp_gpu_sweep {
    int axis;
    float *d_least, *d_sorted_least;    /* where boxes begin: by id, ascending */
    int32_t *d_id, *d_sorted_id;
    bp_box *d_sorted;
    void *d_work;
    size_t work_bytes;
};

__global__ void __launch_bounds__(gpu_block)
    bp_begin_kernel(const bp_box *box, int32_t n, int axis, float *least, int32_t *id)
{
    int32_t const k = gpu_thread();
    if (k >= n) return;
    least[k] = box[k].min[axis];
    id[k] = k;
}

__global__ void __launch_bounds__(gpu_block)
    bp_sorted_kernel(const bp_box *box, int32_t n, const int32_t *id, bp_box *sorted)
{
    int32_t const k = gpu_thread();
    if (k < n) sorted[k] = box[id[k]];
}

/* The loop of bp_sweep_pairs. */
__global__ void __launch_bounds__(gpu_block)
    bp_sweep_kernel(bp_gpu_sweep s, int32_t n, bp_device_list list, unsigned long long *tests)
{
    int32_t const i = gpu_thread();
    int32_t j = i + 1;
    if (i >= n) return;
    bp_box const own = s.d_sorted[i];
    for (; j < n && s.d_sorted_least[j] <= own.max[s.axis]; j++) {
        if (!bp_touch(&own, &s.d_sorted[j])) continue;
        unsigned long long const slot = atomicAdd(list.count, 1ull);
        if (slot >= static_cast<unsigned long long>(list.room)) continue;
        list.ids[2 * slot] = s.d_sorted_id[i];
        list.ids[2 * slot + 1] = s.d_sorted_id[j];
    }
    if (tests) atomicAdd(tests, static_cast<unsigned long long>(j - i - 1));
}

void bp_gpu_sort(bp_gpu *run, bp_gpu_sweep *s)
{
    gpu_must(cub::DeviceRadixSort::SortPairs(s->d_work, s->work_bytes, s->d_least,
                                             s->d_sorted_least, s->d_id, s->d_sorted_id,
                                             run->scene->n, 0, 32, run->stream),
             "sorting");
}

void bp_gpu_sweep_build(bp_gpu *run, bp_gpu_sweep *s)
{
    lbvh_desc const spheres = bp_tree_desc();
    int32_t const n = run->scene->n;
    MUST(lbvh,
         lbvh_cuda_boxes(&run->tree, &spheres, run->d_sphere->p, sizeof(bp_sphere), n,
                         run->d_box->min, run->stream),
         "making boxes");
    gpu_launch(run->stream, n, bp_begin_kernel, run->d_box, n, s->axis, s->d_least, s->d_id);
    bp_gpu_sort(run, s);
    gpu_launch(run->stream, n, bp_sorted_kernel, run->d_box, n, s->d_sorted_id, s->d_sorted);
}

void bp_gpu_sweep_pairs(bp_gpu *run, const bp_gpu_sweep *s, bool count_tests)
{
    gpu_must(cudaMemsetAsync(run->d_count, 0, 2 * sizeof *run->d_count, run->stream), "clearing");
    gpu_launch(run->stream, run->scene->n, bp_sweep_kernel, *s, run->scene->n, run->list,
               count_tests ? run->d_count + 1 : nullptr);
}

bp_gpu_sweep bp_gpu_sweep_new(bp_gpu *run)
{
    size_t const n = static_cast<size_t>(run->scene->n);
    bp_gpu_sweep s = {};
    s.axis = bp_longest_axis(run->scene);
    s.d_least = gpu_array<float>(n);
    s.d_sorted_least = gpu_array<float>(n);
    s.d_id = gpu_array<int32_t>(n);
    s.d_sorted_id = gpu_array<int32_t>(n);
    s.d_sorted = gpu_array<bp_box>(n);
    bp_gpu_sort(run, &s);   /* without memory: it says how much it needs */
    s.d_work = gpu_array<char>(s.work_bytes);
    return s;
}

bp_result bp_gpu_by_sweep(bp_gpu *run, int32_t runs)
{
    bp_gpu_sweep s = bp_gpu_sweep_new(run);
    bp_result result = bp_gpu_run(
        run, runs, [&] { bp_gpu_sweep_build(run, &s); },
        [&] { bp_gpu_sweep_pairs(run, &s, false); });
    bp_gpu_sweep_pairs(run, &s, true);
    result.tests = bp_fetch_count(run, 1);
    void *const memory[] = {s.d_least, s.d_sorted_least, s.d_id, s.d_sorted_id, s.d_sorted,
                            s.d_work};
    for (void *block : memory) gpu_free(block);
    return result;
}

} // namespace

#endif /* BROAD_PHASE_SWEEP_GPU_H */
