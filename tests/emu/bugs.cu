/* bugs.cu - programs with one planted bug each, to prove that the emulator finds that kind.
   SPDX-License-Identifier: MIT

       bugs NAME          runs the program with its bug
       bugs --fixed       runs all of them without: nothing may be reported
       bugs --list        name | mode in which it must be found | what the report must contain

   run.sh does the rounds. The kernels are small on purpose: each is a mistake that people really
   make, with nothing around it. Where a mistake only shows as a wrong result, the program says
   so. */
#include "test_support.h"

#include <cub/cub.cuh>

#include <string.h>

namespace {

const int block = 64;

int answer(bool right)
{
    if (!right) fprintf(stderr, "bugs: wrong answer\n");
    return right ? 0 : 1;
}

std::vector<int> counting(int n)
{
    std::vector<int> v((size_t)n);
    for (int i = 0; i < n; ++i) v[(size_t)i] = i;
    return v;
}

__device__ int global_index() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

/* ---- memory ---------------------------------------------------------------------------------- */

__global__ void double_all(int *x, int n)
{
    int i = global_index();
    if (i < n) x[i] *= 2;
}
int global_bounds(bool bug)
{
    Device<int> x(counting(100));
    must(launch(nullptr, 2, block, 0, double_all, x.get(), bug ? 101 : 100));
    return answer(x.host()[99] == 198);
}

__global__ void reverse_block(int *x, int shift)
{
    __shared__ int tile[block];
    int i = (int)threadIdx.x, *last = tile + block - 1;
    last[shift - i] = x[i];
    __syncthreads();
    x[i] = tile[i];
}
int shared_bounds(bool bug)
{
    Device<int> x(counting(block));
    must(launch(nullptr, 1, block, 0, reverse_block, x.get(), bug ? 1 : 0));
    return answer(x.host()[0] == block - 1);
}

__global__ void reverse_dynamic(int *x)
{
    int *tile = dynamic_shared<int>();
    int i = (int)threadIdx.x;
    tile[block - 1 - i] = x[i];
    __syncthreads();
    x[i] = tile[i];
}
int dynamic_shared_bounds(bool bug)
{
    Device<int> x(counting(block));
    must(launch(nullptr, 1, block, (block - bug) * sizeof(int), reverse_dynamic, x.get()));
    return answer(x.host()[0] == block - 1);
}

__global__ void sum_float4(const float *x, float *out)
{
    const float4 *quad = (const float4 *)x;
    out[threadIdx.x] = quad[threadIdx.x].w;
}
int misaligned(bool bug)
{
    Device<float> x(4 * block + 4, 0), out(block);
    must(launch(nullptr, 1, block, 0, sum_float4, (const float *)x.get() + bug, out.get()));
    return answer(out.host()[0] == 0);
}

struct View {
    int *data;
};
__global__ void fill_view(View view) { view.data[threadIdx.x] = 1; }
int use_after_free(bool bug)
{
    Device<int> x(block);
    int *freed;
    must(cudaMalloc(&freed, block * sizeof(int)));
    must(cudaFree(freed));
    must(launch(nullptr, 1, block, 0, fill_view, View{bug ? freed : x.get()}));
    return answer(x.host()[0] == 1);
}

int host_reads_device(bool bug)
{
    Device<int> x(counting(block));
    return answer((bug ? x.get()[5] : x.host()[5]) == 5);
}

int host_pointer_to_kernel(bool bug)
{
    std::vector<int> host = counting(block);
    Device<int> x(host);
    must(launch(nullptr, 1, block, 0, double_all, bug ? host.data() : x.get(), block));
    return 0;
}

int copy_past_end(bool bug)
{
    Device<int> x(counting(block));
    std::vector<int> host(2 * block);
    must(cudaMemcpy(host.data(), x.get(), (block + bug) * sizeof(int), cudaMemcpyDeviceToHost));
    return answer(host[5] == 5);
}

int copy_direction(bool bug)
{
    Device<int> x(counting(block));
    int first;
    must(cudaMemcpy(&first, x.get(), sizeof first,
                    bug ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
    return answer(first == 0);
}

int leak(bool bug)
{
    int *p;
    must(cudaMalloc(&p, 100));
    if (!bug) must(cudaFree(p));
    return 0;
}

/* ---- what was never set ---------------------------------------------------------------------- */

__global__ void count_odd(const int *x, int n, int *count)
{
    int i = global_index();
    if (i < n && (x[i] & 1)) atomicAdd(count, 1);
}
int counter_not_zeroed(bool bug)
{
    Device<int> x(counting(100)), count(1);
    if (!bug) must(cudaMemset(count.get(), 0, sizeof(int)));
    must(launch(nullptr, 2, block, 0, count_odd, (const int *)x.get(), 100, count.get()));
    return answer(count.host()[0] == 50);
}

__global__ void histogram(const int *x, int *out, bool bug)
{
    __shared__ int bin[8];
    if (!bug && threadIdx.x < 8) bin[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bin[x[threadIdx.x] & 7], 1);
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = bin[threadIdx.x];
}
int shared_not_set(bool bug)
{
    Device<int> x(counting(block)), out(8);
    must(launch(nullptr, 1, block, 0, histogram, (const int *)x.get(), out.get(), bug));
    return answer(out.host()[3] == block / 8);
}

int short_copy(bool bug)
{
    std::vector<int> host = counting(100);
    Device<int> x(100), count(1, 0);
    must(cudaMemcpy(x.get(), host.data(), bug ? 100 : 100 * sizeof(int), cudaMemcpyHostToDevice));
    must(launch(nullptr, 2, block, 0, count_odd, (const int *)x.get(), 100, count.get()));
    return answer(count.host()[0] == 50);
}

/* ---- barriers -------------------------------------------------------------------------------- */

__global__ void neighbour(int *x, bool bug)
{
    __shared__ int tile[block];
    int i = (int)threadIdx.x;
    tile[i] = x[i];
    if (!bug) __syncthreads();
    x[i] = tile[i ^ 1];
}
int missing_barrier(bool bug)
{
    Device<int> x(counting(block));
    must(launch(nullptr, 1, block, 0, neighbour, x.get(), bug));
    return answer(x.host()[4] == 5 && x.host()[5] == 4);
}

__global__ void add_rounds(const int *x, int *out, bool bug)
{
    __shared__ int tile[block];
    int i = (int)threadIdx.x, sum = 0;
    for (int round = 0; round < 3; ++round) {
        tile[i] = x[i] + round;
        __syncthreads();
        sum += tile[block - 1 - i];
        if (!bug) __syncthreads();
    }
    out[i] = sum;
}
int missing_barrier_in_loop(bool bug)
{
    Device<int> x(counting(block)), out(block);
    must(launch(nullptr, 1, block, 0, add_rounds, (const int *)x.get(), out.get(), bug));
    return answer(out.host()[0] == 3 * (block - 1) + 3);
}

__global__ void split(int *x, bool bug)
{
    if (bug && threadIdx.x < 32) {
        x[threadIdx.x] = 1;
        __syncthreads();
    } else {
        x[threadIdx.x] = 1;
        __syncthreads();
    }
}
int divergent_barrier(bool bug)
{
    Device<int> x(block);
    must(launch(nullptr, 1, block, 0, split, x.get(), bug));
    return answer(x.host()[3] == 1);
}

__global__ void early_return(int *x, int n, bool bug)
{
    __shared__ int first;
    if (bug && (int)threadIdx.x >= n) return;
    if (threadIdx.x == 0) first = x[0];
    __syncthreads();
    if ((int)threadIdx.x < n) x[threadIdx.x] = first;
}
int exit_before_barrier(bool bug)
{
    Device<int> x(50, 0);
    must(launch(nullptr, 1, block, 0, early_return, x.get(), 50, bug));
    return answer(x.host()[49] == 0);
}

__global__ void two_sums(int *out, bool bug)
{
    typedef cub::BlockReduce<int, block> Reduce;
    __shared__ typename Reduce::TempStorage storage;
    int a = Reduce(storage).Sum((int)threadIdx.x);
    if (!bug) __syncthreads();
    int b = Reduce(storage).Sum(1);
    if (threadIdx.x == 0) out[0] = a, out[1] = b;
}
int cub_storage_reused(bool bug)
{
    Device<int> out(2);
    must(launch(nullptr, 1, block, 0, two_sums, out.get(), bug));
    return answer(out.host()[0] == block * (block - 1) / 2 && out.host()[1] == block);
}

/* ---- warps ----------------------------------------------------------------------------------- */

__global__ void swap_in_warp(int *x, bool bug)
{
    __shared__ int tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    if (!bug) __syncwarp();
    x[threadIdx.x] = tile[threadIdx.x ^ 16];
}
int missing_syncwarp(bool bug)
{
    Device<int> x(counting(32));
    must(launch(nullptr, 1, 32, 0, swap_in_warp, x.get(), bug));
    return answer(x.host()[0] == 16);
}

__global__ void spread(int *x, bool bug)
{
    unsigned int lower = 0x0000ffffu;
    if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(lower, x[threadIdx.x], bug ? 20 : 3);
}
int shuffle_from_absent_lane(bool bug)
{
    Device<int> x(counting(32));
    must(launch(nullptr, 1, 32, 0, spread, x.get(), bug));
    return answer(x.host()[0] == 3);
}

__global__ void vote_of_half(int *out, bool bug)
{
    if (threadIdx.x < 16) out[threadIdx.x] = (int)__ballot_sync(bug ? 0xffffffffu : 0x0000ffffu, 1);
}
int mask_names_absent_lanes(bool bug)
{
    Device<int> out(16);
    must(launch(nullptr, 1, 32, 0, vote_of_half, out.get(), bug));
    return answer(out.host()[0] == 0xffff);
}

__global__ void vote_without_self(int *out, bool bug)
{
    out[threadIdx.x] = __any_sync(bug ? 0x0000ffffu : 0xffffffffu, 1);
}
int lane_not_in_mask(bool bug)
{
    Device<int> out(32);
    must(launch(nullptr, 1, 32, 0, vote_without_self, out.get(), bug));
    return answer(out.host()[31] == 1);
}

__global__ void sum_active(const int *x, int *out, bool bug)
{
    unsigned int odd = __ballot_sync(0xffffffffu, x[threadIdx.x] & 1);
    if (x[threadIdx.x] & 1) {
        int n = __popc(bug ? __activemask() : odd);
        if ((int)threadIdx.x == __ffs((int)odd) - 1) *out = n;
    }
}
int activemask_taken_for_all(bool bug)
{
    Device<int> x(counting(32)), out(1);
    must(launch(nullptr, 1, 32, 0, sum_active, (const int *)x.get(), out.get(), bug));
    return answer(out.host()[0] == 16);
}

/* ---- races on global memory ------------------------------------------------------------------ */

__global__ void count_cells(const int *cell, int *count, bool bug)
{
    int c = cell[global_index()];
    if (bug) count[c]++;
    else atomicAdd(&count[c], 1);
}
int plain_increment(bool bug)
{
    std::vector<int> cells(2 * block);
    for (size_t i = 0; i < cells.size(); ++i) cells[i] = (int)(i % 7);
    Device<int> cell(cells), count(7, 0);
    must(launch(nullptr, 2, block, 0, count_cells, (const int *)cell.get(), count.get(), bug));
    return answer(count.host()[0] == 19);
}

/* Each block takes the number that the last one left: they run in any order, and at the same
   time. */
__global__ void take_number(int *next, int *taken, bool bug)
{
    __shared__ int mine;
    if (threadIdx.x == 0) mine = bug ? *next : atomicAdd(next, 1);
    __syncthreads();
    if (bug && threadIdx.x == 0) *next = mine + 1;
    if (threadIdx.x == 0) taken[blockIdx.x] = mine;
}
int race_between_blocks(bool bug)
{
    Device<int> next(1, 0), taken(8);
    must(launch(nullptr, 8, block, 0, take_number, next.get(), taken.get(), bug));
    return answer(next.host()[0] == 8);
}

/* Two threads per node; the second to come adds what both left. `fences`: bit 0 before, bit 1 after
   the atomic. `late`: the data is written after the fence instead of before it. */
__global__ void meet(int *left, int *counter, int *sum, int fences, bool late)
{
    int i = global_index(), node = i / 2;
    if (!late) left[i] = i;
    if (fences & 1) __threadfence();
    if (late) left[i] = i;
    if (atomicAdd(&counter[node], 1) == 0) return;
    if (fences & 2) __threadfence();
    sum[node] = left[i ^ 1] + left[i];
}
int run_meet(int fences, bool late)
{
    Device<int> left(4 * block), counter(2 * block, 0), sum(2 * block);
    must(launch(nullptr, 4, block, 0, meet, left.get(), counter.get(), sum.get(), fences, late));
    return answer(sum.host()[3] == 13);
}
int no_fences(bool bug) { return run_meet(bug ? 0 : 3, false); }
int no_fence_before(bool bug) { return run_meet(bug ? 2 : 3, false); }
int no_fence_after(bool bug) { return run_meet(bug ? 1 : 3, false); }
int write_after_fence(bool bug) { return run_meet(3, bug); }

/* The same between blocks: thread i of one meets thread i of the other. */
__global__ void meet_across(int *left, int *counter, int *sum, int fences)
{
    int i = global_index(), node = (int)threadIdx.x;
    left[i] = i;
    if (fences & 1) __threadfence();
    if (atomicAdd(&counter[node], 1) == 0) return;
    if (fences & 2) __threadfence();
    sum[node] = left[node] + left[node + block];
}
int run_meet_across(int fences)
{
    Device<int> left(2 * block), counter(block, 0), sum(block);
    must(launch(nullptr, 2, block, 0, meet_across, left.get(), counter.get(), sum.get(), fences));
    return answer(sum.host()[3] == block + 6);
}
int no_fence_before_across(bool bug) { return run_meet_across(bug ? 2 : 3); }
int no_fence_after_across(bool bug) { return run_meet_across(bug ? 1 : 3); }

/* Each block waits for its neighbour: with more blocks than the GPU holds at once, for ever. */
__global__ void wait_for_neighbour(int *flag, bool bug)
{
    atomicExch(&flag[blockIdx.x], 1);
    if (bug)
        while (atomicAdd(&flag[(blockIdx.x + 1) % gridDim.x], 0) == 0) {}
}
int waits_for_other_block(bool bug)
{
    Device<int> flag(3, 0);
    must(launch(nullptr, 3, 1, 0, wait_for_neighbour, flag.get(), bug));
    return answer(flag.host()[0] == 1);
}

/* ---- streams, graphs, results ---------------------------------------------------------------- */

int missing_stream_sync(bool bug)
{
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *pinned, seen;
    must(cudaMallocHost(&pinned, sizeof(int)));
    *pinned = 0;
    {
        Device<int> x(counting(block));
        must(launch(stream, 1, block, 0, double_all, x.get(), block));
        must(cudaMemcpyAsync(pinned, x.get() + 5, sizeof(int), cudaMemcpyDeviceToHost, stream));
        if (!bug) must(cudaStreamSynchronize(stream));
        seen = *pinned;
    }
    must(cudaFreeHost(pinned));
    must(cudaStreamDestroy(stream));
    return answer(seen == 10);
}

int missing_event_wait(bool bug)
{
    cudaStream_t one, two;
    cudaEvent_t event;
    must(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int seen = 0;
    {
        Device<int> x(counting(block));
        must(launch(one, 1, block, 0, double_all, x.get(), block));
        must(cudaEventRecord(event, one));
        if (!bug) must(cudaStreamWaitEvent(two, event));
        must(cudaMemcpyAsync(&seen, x.get() + 5, sizeof(int), cudaMemcpyDeviceToHost, two));
        must(cudaStreamSynchronize(two));
    }
    must(cudaEventDestroy(event));
    must(cudaStreamDestroy(one));
    must(cudaStreamDestroy(two));
    return answer(seen == 10);
}

/* A library function in miniature: it has to return the error of its launch. */
cudaError_t step(int *x, int n, bool bug)
{
    cudaError_t error =
        launch(nullptr, (unsigned int)((n + block - 1) / block), block, 0, double_all, x, n);
    return bug ? cudaSuccess : error;
}
int launch_not_checked(bool bug)
{
    Device<int> x(counting(block));
    emu_fail_launch(1);
    cudaError_t error = step(x.get(), block, bug);
    (void)cudaGetLastError();
    return answer(error == cudaErrorLaunchOutOfResources);
}
int grid_of_zero(bool bug)
{
    Device<int> x(block);
    return answer(step(x.get(), bug ? 0 : block, false) == cudaSuccess);
}

int cub_storage_too_small(bool bug)
{
    Device<int> keys(counting(1000)), sorted(1000);
    size_t bytes = 0;
    const int *in = keys.get();
    must(cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, sorted.get(), 1000));
    Device<char> storage(bytes);
    bytes -= bug;
    return answer(cub::DeviceRadixSort::SortKeys(storage.get(), bytes, in, sorted.get(), 1000) ==
                  cudaSuccess);
}

/* What may stand between BeginCapture and EndCapture, and what not. */
int run_capture(void (*forbidden)(cudaStream_t), bool bug)
{
    Device<int> x(counting(block));
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    must(cudaStreamCreate(&stream));
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    must(launch(stream, 1, block, 0, double_all, x.get(), block));
    if (bug) forbidden(stream);
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error == cudaSuccess) {
        must(cudaGraphInstantiate(&exec, graph));
        must(cudaGraphLaunch(exec, stream));
        must(cudaGraphLaunch(exec, stream));
        must(cudaStreamSynchronize(stream));
        must(cudaGraphExecDestroy(exec));
        must(cudaGraphDestroy(graph));
    }
    must(cudaStreamDestroy(stream));
    (void)cudaGetLastError();
    return answer(error == cudaSuccess && x.host()[3] == 12);
}
int capture_synchronises(bool bug)
{
    return run_capture([](cudaStream_t stream) { (void)cudaStreamSynchronize(stream); }, bug);
}
int capture_allocates(bool bug)
{
    return run_capture([](cudaStream_t) { int *p = nullptr; (void)cudaMalloc(&p, 100); }, bug);
}
int capture_uses_default_stream(bool bug)
{
    return run_capture(
        [](cudaStream_t) { (void)launch(nullptr, 1, 1, 0, fill_view, View{nullptr}); }, bug);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Modes: "any" is the AddressSanitizer build in each of the three orders, "msan", "tsan",
   "tsan-blocks" (EMU_TSAN_BLOCKS=1), "lazy" (EMU_LAZY=1), "blocks" (EMU_BLOCKS=4, random order). */
struct Planted {
    const char *name;
    int (*run)(bool bug);
    const char *mode, *report;
};

const Planted planted[] = {
    {"global_bounds", global_bounds, "any", "heap-buffer-overflow"},
    {"shared_bounds", shared_bounds, "any", "global-buffer-overflow|insufficient space"},
    {"dynamic_shared_bounds", dynamic_shared_bounds, "any", "use-after-poison"},
    {"misaligned", misaligned, "any", "misaligned address"},
    {"use_after_free", use_after_free, "any", "heap-use-after-free"},
    {"host_reads_device", host_reads_device, "any", "use-after-poison"},
    {"host_pointer_to_kernel", host_pointer_to_kernel, "any",
     "argument 1 of kernel double_all, .* is a pointer to host memory"},
    {"copy_past_end", copy_past_end, "any", "source of a copy: 260 bytes, but only 256 are left"},
    {"copy_direction", copy_direction, "any", "the destination is host memory"},
    {"leak", leak, "any", "emu: leak: 100 bytes, allocation #1, cudaMalloc"},
    {"counter_not_zeroed", counter_not_zeroed, "msan", "use-of-uninitialized-value"},
    {"shared_not_set", shared_not_set, "msan", "use-of-uninitialized-value"},
    {"short_copy", short_copy, "msan", "use-of-uninitialized-value"},
    {"missing_barrier", missing_barrier, "tsan", "data race.*neighbour"},
    {"missing_barrier_in_loop", missing_barrier_in_loop, "tsan", "data race.*add_rounds"},
    {"divergent_barrier", divergent_barrier, "any", "32 threads wait in __syncthreads at bugs.cu"},
    {"exit_before_barrier", exit_before_barrier, "any", "14 threads have returned from the kernel"},
    {"cub_storage_reused", cub_storage_reused, "tsan", "data race.*(BlockReduce|Reduce<cub)"},
    {"missing_syncwarp", missing_syncwarp, "tsan", "data race.*swap_in_warp"},
    {"shuffle_from_absent_lane", shuffle_from_absent_lane, "any",
     "reads lane 20, which takes no part"},
    {"mask_names_absent_lanes", mask_names_absent_lanes, "any", "16 threads wait in __ballot_sync"},
    {"lane_not_in_mask", lane_not_in_mask, "any", "is not in its own mask 0x0000ffff"},
    {"activemask_taken_for_all", activemask_taken_for_all, "any", "wrong answer"},
    {"plain_increment", plain_increment, "tsan", "data race.*count_cells"},
    {"race_between_blocks", race_between_blocks, "tsan-blocks", "data race.*take_number"},
    {"race_between_blocks", race_between_blocks, "blocks", "wrong answer"},
    {"no_fences", no_fences, "tsan", "data race.*meet"},
    {"no_fence_before", no_fence_before, "tsan", "data race.*meet"},
    {"no_fence_after", no_fence_after, "tsan", "data race.*meet"},
    {"write_after_fence", write_after_fence, "tsan", "data race.*meet"},
    {"no_fence_before_across", no_fence_before_across, "tsan-blocks", "data race.*meet_across"},
    {"no_fence_after_across", no_fence_after_across, "tsan-blocks", "data race.*meet_across"},
    {"waits_for_other_block", waits_for_other_block, "any",
     "does one wait for a block that has not started"},
    {"missing_stream_sync", missing_stream_sync, "lazy", "wrong answer"},
    {"missing_event_wait", missing_event_wait, "lazy", "wrong answer"},
    {"launch_not_checked", launch_not_checked, "any", "wrong answer"},
    {"grid_of_zero", grid_of_zero, "any", "wrong answer"},
    {"cub_storage_too_small", cub_storage_too_small, "any", "wrong answer"},
    {"capture_synchronises", capture_synchronises, "any", "wrong answer"},
    {"capture_allocates", capture_allocates, "any", "wrong answer"},
    {"capture_uses_default_stream", capture_uses_default_stream, "any", "wrong answer"},
};

int run_fixed()
{
    for (const Planted &p : planted)
        if (p.run(false) != 0)
            return fprintf(stderr, "bugs: %s fails without its bug\n", p.name), 1;
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "--fixed")) return run_fixed();
    for (const Planted &p : planted) {
        if (!strcmp(what, "--list")) printf("%s|%s|%s\n", p.name, p.mode, p.report);
        if (!strcmp(what, p.name)) return p.run(true);
    }
    return strcmp(what, "--list") ? 2 : 0;
}
