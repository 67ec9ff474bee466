/* broad_phase.cu - the broad phase of broad_phase.c on a GPU: the same command line, figures and picture.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: a grid and a tree that stay on the GPU from the spheres to the list of pairs. The grid's search is a kernel of its
   own (bp_pairs_kernel), with the same walk as in broad_phase.c; the tree's is ready-made. Both lists have fixed room and
   count on where it ends, so the size needed is known after the first try, and nothing is allocated from then on.

   How to run it:

       make cuda && build/cuda/broad_phase             (from the top of the repository), or
       nvcc -O3 -arch=native examples/broad_phase.cu -o broad_phase -lstb
       ./broad_phase -n 1000000 --picture slice.png

   --check also builds the tree with the serial code: it must be the same in every bit, with the same pairs; exit status 1 when not.

   What to look at: >>kernels, >>grid and >>tree below. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "broad_phase.c" /* without its main: the serial searches, to compare with */

#include <cuda_runtime.h>

namespace {

/* ------------------------------------------------------------------------------------------------
   >>kernels
   ------------------------------------------------------------------------------------------------ */

constexpr int bp_block = 128;

__device__ int32_t bp_thread() { return static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x); }

/* As bp_list, in device memory. */
struct bp_device_list {
    int32_t *ids;               /* [2 * room] */
    int64_t room;
    unsigned long long *count;
};

/* One thread per place: the loop of bp_grid_pairs. `tests` (may be null) counts them, when nothing is timed. */
__global__ void __launch_bounds__(bp_block)
    bp_pairs_kernel(__grid_constant__ const ugrid_device device, const bp_box *near_box, float reach, bp_device_list list,
                    unsigned long long *tests)
{
    const ugrid *grid = &device.grid;
    int32_t const place = bp_thread();
    if (place >= grid->n) return;
    bp_box const own = near_box[place];
    unsigned long long compared = 0;
    ugrid_near near = ugrid_near_half(grid, place, reach);
    while (ugrid_next_range(&near)) {
        compared += static_cast<unsigned long long>(near.end - near.begin);
        for (int32_t k = near.begin; k < near.end; k++) {
            if (!bp_touch(&own, &near_box[k])) continue;
            unsigned long long const slot = atomicAdd(list.count, 1ull);
            if (slot >= static_cast<unsigned long long>(list.room)) continue;
            list.ids[2 * slot] = ugrid_id(grid, place);
            list.ids[2 * slot + 1] = ugrid_id(grid, k);
        }
    }
    if (tests) atomicAdd(tests, compared);
}

/* ------------------------------------------------------------------------------------------------
   >>device: memory and errors
   ------------------------------------------------------------------------------------------------ */

void bp_cuda_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) bp_stop(1, "%s: %s", what, cudaGetErrorString(error));
}

/* The one place where kernels are launched: the compiler checks the types of the arguments. */
template <class... Parameters, class... Arguments>
void bp_launch(cudaStream_t stream, int64_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((threads + bp_block - 1) / bp_block));
    config.blockDim = dim3(bp_block);
    config.stream = stream;
    bp_cuda_must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "starting a kernel");
}

template <class T> T *bp_device_array(int64_t count)
{
    void *memory = nullptr;
    bp_cuda_must(cudaMalloc(&memory, static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)), "GPU memory");
    return static_cast<T *>(memory);
}

template <class T> void bp_copy(T *to, const T *from, int64_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    bp_cuda_must(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), kind, stream), "copying");
}

/* Everything a run needs. */
struct bp_gpu {
    const bp_scene *scene;
    cudaStream_t stream;
    cudaEvent_t begin, built, end;
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
    bp_cuda_must(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking), "no GPU to run on");
    for (cudaEvent_t *event : {&run.begin, &run.built, &run.end}) bp_cuda_must(cudaEventCreate(event), "an event");
    run.d_sphere = bp_device_array<bp_sphere>(scene->n);
    run.d_box = bp_device_array<bp_box>(scene->n);
    run.d_near_box = bp_device_array<bp_box>(scene->n);
    run.d_count = bp_device_array<unsigned long long>(2);
    run.list.count = run.d_count;
    bp_copy(run.d_sphere, scene->sphere, scene->n, cudaMemcpyHostToDevice, run.stream);
    return run;
}

void bp_gpu_free(bp_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    lbvh_cuda_free(&run->tree);
    void *const memory[] = {run->d_sphere, run->d_box, run->d_near_box, run->d_count, run->list.ids};
    for (void *block : memory) bp_cuda_must(cudaFree(block), "freeing");
    for (cudaEvent_t event : {run->begin, run->built, run->end}) bp_cuda_must(cudaEventDestroy(event), "an event");
    bp_cuda_must(cudaStreamDestroy(run->stream), "the stream");
}

/* Brings one of the two counters to the host. */
int64_t bp_fetch_count(bp_gpu *run, int k)
{
    unsigned long long count = 0;
    bp_copy(&count, run->d_count + k, 1, cudaMemcpyDeviceToHost, run->stream);
    bp_cuda_must(cudaStreamSynchronize(run->stream), "searching");
    return static_cast<int64_t>(count);
}

void bp_device_room(bp_gpu *run, int64_t pairs)
{
    if (run->list.ids) bp_cuda_must(cudaFree(run->list.ids), "freeing");
    run->list.ids = bp_device_array<int32_t>(2 * pairs);
    run->list.room = pairs;
}

/* ------------------------------------------------------------------------------------------------
   >>grid
   ------------------------------------------------------------------------------------------------ */

/* The domain is asked for once: a simulation knows the box that it runs in. */
ugrid_desc bp_gpu_grid_desc(const bp_scene *scene)
{
    ugrid_desc desc = bp_grid_desc(scene);
    bp_grid_must(ugrid_fit(&desc, scene->sphere->p, sizeof(bp_sphere), scene->n, nullptr), "measuring the spheres");
    return desc;
}

void bp_gpu_grid_build(bp_gpu *run, const ugrid_desc *desc)
{
    lbvh_desc const spheres = bp_tree_desc();
    int32_t const n = run->scene->n;
    const float *const data = run->d_sphere->p;
    bp_grid_must(ugrid_cuda_build(&run->grid, desc, data, sizeof(bp_sphere), n, run->stream), "building the grid");
    bp_tree_must(lbvh_cuda_boxes(&run->tree, &spheres, data, sizeof(bp_sphere), n, run->d_box->min, run->stream), "making boxes");
    bp_grid_must(ugrid_cuda_gather(&run->grid, run->d_box, sizeof(bp_box), run->d_near_box, run->stream), "moving boxes");
}

void bp_gpu_grid_pairs(bp_gpu *run, bool count_tests)
{
    bp_cuda_must(cudaMemsetAsync(run->d_count, 0, 2 * sizeof *run->d_count, run->stream), "clearing");
    bp_launch(run->stream, run->scene->n, bp_pairs_kernel, run->grid.device, run->d_near_box, bp_reach(run->scene), run->list,
              count_tests ? run->d_count + 1 : nullptr);
}

/* ------------------------------------------------------------------------------------------------
   >>tree
   ------------------------------------------------------------------------------------------------ */

void bp_gpu_tree_build(bp_gpu *run)
{
    lbvh_desc const desc = bp_tree_desc();
    const float *const data = run->d_sphere->p;
    bp_tree_must(lbvh_cuda_build(&run->tree, &desc, data, sizeof(bp_sphere), run->scene->n, run->stream), "building the tree");
}

void bp_gpu_tree_pairs(bp_gpu *run)
{
    int64_t *d_needed = reinterpret_cast<int64_t *>(run->d_count);
    bp_tree_must(lbvh_cuda_pairs(&run->tree, run->list.ids, run->list.room, d_needed, run->stream), "finding pairs");
}

/* ------------------------------------------------------------------------------------------------
   >>run
   ------------------------------------------------------------------------------------------------ */

double bp_elapsed(cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    bp_cuda_must(cudaEventElapsedTime(&ms, from, to), "timing");
    return static_cast<double>(ms);
}

/* As bp_run: the first run finds out how much room the pairs need, and is not timed. */
template <class Build, class Search>
bp_result bp_gpu_run(bp_gpu *run, int32_t runs, Build build, Search search)
{
    double *const building = static_cast<double *>(bp_alloc(static_cast<size_t>(runs), sizeof(double)));
    double *const searching = static_cast<double *>(bp_alloc(static_cast<size_t>(runs), sizeof(double)));
    bp_list list = {};
    bp_result result = {};
    build();
    search();
    result.pairs = bp_fetch_count(run, 0);
    bp_device_room(run, result.pairs);
    for (int32_t k = 0; k < runs; k++) {
        bp_cuda_must(cudaEventRecord(run->begin, run->stream), "timing");
        build();
        bp_cuda_must(cudaEventRecord(run->built, run->stream), "timing");
        search();
        bp_cuda_must(cudaEventRecord(run->end, run->stream), "timing");
        if (bp_fetch_count(run, 0) != result.pairs) bp_stop(1, "two runs found different numbers of pairs");
        building[k] = bp_elapsed(run->begin, run->built);
        searching[k] = bp_elapsed(run->built, run->end);
    }
    bp_make_room(&list, result.pairs);
    bp_copy(list.ids, run->list.ids, 2 * result.pairs, cudaMemcpyDeviceToHost, run->stream);
    bp_cuda_must(cudaStreamSynchronize(run->stream), "fetching the pairs");
    result.hash = bp_hash(list.ids, result.pairs);
    result.build_ms = bp_median(building, runs);
    result.pairs_ms = bp_median(searching, runs);
    free(list.ids);
    free(building);
    free(searching);
    return result;
}

bp_result bp_gpu_by_grid(bp_gpu *run, int32_t runs)
{
    ugrid_desc const desc = bp_gpu_grid_desc(run->scene);
    bp_result result = bp_gpu_run(run, runs, [&] { bp_gpu_grid_build(run, &desc); }, [&] { bp_gpu_grid_pairs(run, false); });
    bp_gpu_grid_pairs(run, true);
    result.tests = bp_fetch_count(run, 1);
    bp_grid_must(ugrid_cuda_check(&run->grid, run->stream), "building the grid");
    return result;
}

bp_result bp_gpu_by_tree(bp_gpu *run, int32_t runs, lbvh *host)
{
    bp_result result = bp_gpu_run(run, runs, [&] { bp_gpu_tree_build(run); }, [&] { bp_gpu_tree_pairs(run); });
    bp_tree_must(lbvh_cuda_check(&run->tree, run->stream), "building the tree");
    bp_tree_must(lbvh_cuda_download(host, &run->tree, run->stream), "fetching the tree");
    result.tests = bp_tree_tests(host);
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>check: the serial code makes the same tree, and finds the same pairs
   ------------------------------------------------------------------------------------------------ */

bool bp_reference_agrees(const bp_scene *scene, const lbvh *tree, const bp_result *by_tree)
{
    bp_tree serial = {};
    serial.scene = scene;
    bp_result const expected = bp_run(1, &serial, bp_tree_build, bp_tree_pairs);
    size_t const nodes = 2 * static_cast<size_t>(scene->n) - 1;
    bool const same_tree = tree->n == scene->n && memcmp(tree->node, serial.tree.node, nodes * sizeof *tree->node) == 0;
    bool const same_pairs = bp_same(&expected, by_tree) != 0;
    printf("reference_pairs %lld\n", static_cast<long long>(expected.pairs));
    printf("reference_hash %016llx\n", static_cast<unsigned long long>(expected.hash));
    printf("reference_same_tree %d\nreference_agrees %d\n", same_tree, same_tree && same_pairs);
    lbvh_free(&serial.tree);
    return same_tree && same_pairs;
}

} // namespace

int main(int argc, char **argv)
{
    bp_options const options = bp_parse(argc, argv);
    bp_scene scene = bp_begin(&options);
    bp_gpu run = bp_gpu_new(&scene);
    lbvh tree = {};
    ugrid grid = {};
    bp_result const by_grid = bp_gpu_by_grid(&run, options.runs), by_tree = bp_gpu_by_tree(&run, options.runs, &tree);
    if (options.picture) {
        bp_grid_must(ugrid_cuda_download(&grid, &run.grid, run.stream), "fetching the grid");
        bp_draw(&options, bp_picture_of(&scene, &grid, &tree, &by_grid, &by_tree));
    }
    bool agree = bp_finish(&options, &scene, &by_grid, &by_tree) != 0;
    if (options.check) agree = bp_reference_agrees(&scene, &tree, &by_tree) && agree;
    bp_gpu_free(&run);
    ugrid_free(&grid);
    lbvh_free(&tree);
    bp_scene_free(&scene);
    return agree ? 0 : 1;
}
