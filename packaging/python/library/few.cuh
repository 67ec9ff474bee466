/* few.cuh - pairs among few points of a GPU: each is tried with each, a warp for a row.
   SPDX-License-Identifier: MIT OR Unlicense

   For nearfield.torch. Kernels that put the points into cells (nlist.cu, >>boxes) take longer than
   all distances between few points. Here one launch counts the rows, one finds where they begin,
   and one writes them into arrays of the size that is known by then. Pairs, their order and the
   rounding of distances are those of nlist_cuda_build_boxes with desc.sorted and no periodic
   axis. */

namespace {

constexpr int32_t nearfield_i_few_points = 16384;
constexpr int nearfield_i_few_block = 256, nearfield_i_scan_block = 1024;

struct nearfield_i_few {
    nlist_desc desc;
    const nlist_real *pos;
    size_t stride;
    int32_t n, systems, own;
    const int32_t *starts;      /* [systems + 1], or NULL: one system */
    int64_t *begin;             /* [n + 3] */
};

/* The points of the system that point i is in: from..to - 1. */
__device__ __forceinline__ void nearfield_i_system_of(const nearfield_i_few &few, int32_t i,
                                                      int32_t *from, int32_t *to)
{
    int32_t low = 0, high = few.systems;
    *from = 0;
    *to = few.n;
    if (!few.starts) return;
    while (high - low > 1) {
        int32_t const middle = low + (high - low) / 2;
        if (few.starts[middle] <= i) low = middle;
        else high = middle;
    }
    *from = few.starts[low];
    *to = few.starts[low + 1];
}

/* 1 if j is in the row of point i, which is at p. */
__device__ __forceinline__ bool nearfield_i_lists(const nearfield_i_few &few, int32_t i,
                                                  const nlist_real p[3], int32_t j)
{
    nlist_real const none[3] = {0, 0, 0};
    int32_t const same[3] = {0, 0, 0};
    nlist_real q[3], d[3];
    if (i == j) return few.own == 1;
    nlist_i_load(few.pos, few.stride, 3, j, q);
    return nlist_i_offset(p, q, none, d) <= nlist_i_limit(&few.desc, 0, 0) &&
           nlist_i_may_list_image(&few.desc, nullptr, i, j, same);
}

/* A warp for the row of each point. Without `to_i` and `to_j`: begin[i] becomes its length, or -1
   where the point is not finite. */
__global__ void __launch_bounds__(nearfield_i_few_block)
    nearfield_i_few_kernel(__grid_constant__ const nearfield_i_few few, int64_t *to_i,
                           int64_t *to_j)
{
    int32_t const i = nlist_i_thread() / 32, lane = threadIdx.x % 32;
    int32_t from, to;
    nlist_real p[3];
    if (i >= few.n) return; /* all lanes of the warp */
    nlist_i_load(few.pos, few.stride, 3, i, p);
    nearfield_i_system_of(few, i, &from, &to);
    bool const finite = nlist_i_finite(p[0]) && nlist_i_finite(p[1]) && nlist_i_finite(p[2]);
    int64_t at = to_i ? few.begin[i] : 0;
    if (few.own == 2) {
        if (to_i && lane == 0) to_i[at] = to_j[at] = i;
        at++;
    }
    for (int32_t first = from; first < to; first += 32) {
        int32_t const j = first + lane;
        bool const listed = j < to && nearfield_i_lists(few, i, p, j);
        uint32_t const lanes = __ballot_sync(0xFFFFFFFFu, listed);
        if (to_i && listed) {
            int64_t const entry = at + __popc(lanes & ((1u << lane) - 1));
            to_i[entry] = i;
            to_j[entry] = j;
        }
        at += __popc(lanes);
    }
    if (!to_i && lane == 0) few.begin[i] = finite ? at : -1;
}

/* The sum of x over this thread and those before it in the block; `sums` has a number per warp. */
__device__ __forceinline__ int32_t nearfield_i_sum_up_to(int32_t x, int32_t *sums)
{
    int32_t const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int32_t before = 0;
    for (int step = 1; step < 32; step *= 2) {
        int32_t const other = __shfl_up_sync(0xFFFFFFFFu, x, step);
        if (lane >= step) x += other;
    }
    if (lane == 31) sums[warp] = x;
    __syncthreads();
    for (int32_t w = 0; w < warp; w++) before += sums[w];
    return before + x;
}

/* Lengths become begins, and begin[n] their sum; behind it the longest, and the first point that
   is not finite, or -1. One block. */
__global__ void __launch_bounds__(nearfield_i_scan_block)
    nearfield_i_few_begins_kernel(int64_t *begin, int32_t n)
{
    __shared__ int32_t sums[nearfield_i_scan_block / 32], longest, bad;
    int32_t const each = (n + nearfield_i_scan_block - 1) / nearfield_i_scan_block;
    int32_t const first = (int32_t)threadIdx.x * each, end = first + each < n ? first + each : n;
    int32_t sum = 0, most = 0;
    if (threadIdx.x == 0) longest = bad = 0;
    __syncthreads();
    for (int32_t i = first; i < end; i++) {
        int32_t const length = (int32_t)begin[i];
        if (length < 0) atomicMax(&bad, INT32_MAX - i);
        else sum += length;
        most = length > most ? length : most;
    }
    if (most > 0) atomicMax(&longest, most);
    int32_t at = nearfield_i_sum_up_to(sum, sums) - sum; /* the block waits in it */
    if (threadIdx.x == nearfield_i_scan_block - 1) {
        begin[n] = at + sum;
        begin[n + 1] = longest;
        begin[n + 2] = bad ? INT32_MAX - bad : -1;
    }
    for (int32_t i = first; i < end; i++) {
        int32_t const length = (int32_t)begin[i];
        begin[i] = at;
        at += length > 0 ? length : 0;
    }
}

/* A warp for each row of a list: i and j of its entries. */
__global__ void __launch_bounds__(nearfield_i_few_block)
    nearfield_i_entries_kernel(const int64_t *start, const int32_t *partner, int32_t n,
                               int64_t *to_i, int64_t *to_j)
{
    int64_t const i = nlist_i_global_thread() / 32;
    if (i >= n) return;
    for (int64_t e = start[i] + threadIdx.x % 32; e < start[i + 1]; e += 32) {
        to_i[e] = i;
        to_j[e] = partner[e];
    }
}

template <class... Parameters, class... Arguments>
nlist_result nearfield_i_launch(cudaStream_t stream, int64_t blocks, int block,
                                void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    if (blocks == 0) return NLIST_OK;
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)block);
    config.stream = stream;
    if (cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...) == cudaSuccess)
        return NLIST_OK;
    (void)cudaGetLastError(); /* it is reported; the next call begins without it */
    return NLIST_CUDA_ERROR;
}

/* A warp for each of n rows. */
template <class... Parameters, class... Arguments>
nlist_result nearfield_i_launch_rows(cudaStream_t stream, int64_t n, void (*kernel)(Parameters...),
                                     Arguments... arguments)
{
    int64_t const per_block = nearfield_i_few_block / 32;
    return nearfield_i_launch(stream, (n + per_block - 1) / per_block, nearfield_i_few_block,
                              kernel, arguments...);
}

nearfield_i_few nearfield_i_few_of(const nlist_real *d_pos, size_t stride, int32_t n,
                                   const int32_t *d_starts, int32_t systems, nlist_real cutoff,
                                   int32_t half, int32_t own, int64_t *d_begin)
{
    nearfield_i_few few = {};
    few.desc.dim = 3;
    few.desc.radius = nearfield_i_below(cutoff);
    few.desc.half = half;
    few.pos = d_pos;
    few.stride = nlist_i_stride(stride, 3);
    few.n = n;
    few.starts = d_starts;
    few.systems = systems;
    few.own = own;
    few.begin = d_begin;
    return few;
}

} // namespace

extern "C" {

/* Up to so many points the two calls below take, and are to be preferred. */
NEARFIELD_API int32_t nearfield_cuda_few(void) { return nearfield_i_few_points; }

/* Counts pairs that are nearer than (<) the cutoff, in systems that d_starts delimits (NULL: one
   system). half: each pair once. own: each point is in its row, 1 = in the order of ids, 2 = in
   front. Fills d_begin [n + 3], and tells the number of pairs, the length of the longest row and
   the first point that is not finite (-1: none) [3]. Waits for the stream. */
NEARFIELD_API nlist_result nearfield_cuda_few_count(const nlist_real *d_pos, size_t stride,
                                                    int32_t n, const int32_t *d_starts,
                                                    int32_t systems, nlist_real cutoff,
                                                    int32_t half, int32_t own, int64_t *d_begin,
                                                    int64_t *told, cudaStream_t stream)
{
    nearfield_i_few const few = nearfield_i_few_of(d_pos, stride, n, d_starts, systems, cutoff,
                                                   half, own, d_begin);
    nlist_real const limit = nlist_i_limit(&few.desc, 0, 0);
    nlist_result result;
    if (n < 0 || n > nearfield_i_few_points || (n > 0 && !d_pos) || few.stride == 0 || !d_begin)
        return NLIST_BAD_ARGUMENT;
    if (!(few.desc.radius > 0) || !(limit >= NLIST_I_REAL_MIN) || !nlist_i_finite(limit))
        return NLIST_BAD_RADIUS;
    result = nearfield_i_launch_rows(stream, n, nearfield_i_few_kernel, few, nullptr, nullptr);
    if (result == NLIST_OK)
        result = nearfield_i_launch(stream, 1, nearfield_i_scan_block,
                                    nearfield_i_few_begins_kernel, d_begin, n);
    if (result != NLIST_OK) return result;
    if (nearfield_cuda_fetch(told, d_begin + n, 3 * sizeof *told, stream) != 0)
        return NLIST_CUDA_ERROR;
    return told[2] >= 0 ? NLIST_NOT_FINITE : NLIST_OK;
}

/* Writes them, after a call of the above with the same arguments: row by row, ascending. */
NEARFIELD_API nlist_result nearfield_cuda_few_write(const nlist_real *d_pos, size_t stride,
                                                    int32_t n, const int32_t *d_starts,
                                                    int32_t systems, nlist_real cutoff,
                                                    int32_t half, int32_t own, int64_t *d_begin,
                                                    int64_t *d_i, int64_t *d_j,
                                                    cudaStream_t stream)
{
    nearfield_i_few const few = nearfield_i_few_of(d_pos, stride, n, d_starts, systems, cutoff,
                                                   half, own, d_begin);
    return nearfield_i_launch_rows(stream, n, nearfield_i_few_kernel, few, d_i, d_j);
}

/* i and j of the entries of n rows, those of a NLIST_COMPACT list. */
NEARFIELD_API nlist_result nearfield_cuda_entries(const int64_t *d_start, const int32_t *d_partner,
                                                  int32_t n, int64_t *d_i, int64_t *d_j,
                                                  cudaStream_t stream)
{
    return nearfield_i_launch_rows(stream, n, nearfield_i_entries_kernel, d_start, d_partner, n,
                                   d_i, d_j);
}

} // extern "C"
