/* cuda/ugrid.cu - v0.2.0 - the CUDA part of ugrid.h, which includes this file. Sections and names
   follow it.
   SPDX-License-Identifier: MIT OR Unlicense

   The first part is for every .cu file that calls the GPU: what is compiled where it is called, and
   what cuda/nlist.cu uses, too. The second part, from >>memory on, is for the one file with
   UGRID_IMPLEMENTATION.

   A kernel gives each thread one turn of a serial loop of ugrid.h. What a turn does with its
   particle is the same UGRID_FN function on both sides. (No serial code corresponds to >>pieces,
   >>parts, >>cooperative, >>hits and >>twins.) Sorts and scans of whole arrays are calls of CUB. A
   warp is 32 threads that run together, its lanes 0 .. 31; __shfl, __ballot and similar functions
   read registers of other lanes (Blog). In a mask of lanes, 31 - __clz(mask) is the highest and
   __ffs(mask) - 1 the lowest.

   >>contents: launch, each, pieces; memory, order, split, fit, build, parts, cooperative,
   build-sorted, attributes, search, hits, twins, query */

#if 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + UGRID_VERSION_PATCH != 200
#error "cuda/ugrid.cu 0.2.0 and ugrid.h are of different versions: copy both from one release"
#endif

#ifndef UGRID_I_CUDA_TEMPLATES
#define UGRID_I_CUDA_TEMPLATES

/* ----------------------------------------------------------------------------------------------
   >>launch: launches of kernels
   ---------------------------------------------------------------------------------------------- */

/* Launches a kernel: the compiler checks the argument types, the error is stored and returned. No
   other function launches kernels. */
template <class... Parameters, class... Arguments>
static ugrid_result ugrid_i_launch_config(ugrid_cuda *gpu, const cudaLaunchConfig_t &config,
                                          void (*kernel)(Parameters...), Arguments... arguments)
{
    size_t const declared = 48 * 1024; /* more shared memory must be requested */
    cudaError_t error = cudaSuccess;
    gpu->stream = config.stream;
    if (config.dynamicSmemBytes > declared)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)config.dynamicSmemBytes);
    if (error == cudaSuccess) error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
    if (error == cudaSuccess) return UGRID_OK;
    gpu->device.grid.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* reported: the next call begins without it */
    return UGRID_CUDA_ERROR;
}

/* Launches `threads` threads. `shared`: bytes of dynamic shared memory. */
template <class... Parameters, class... Arguments>
static ugrid_result ugrid_i_launch_shared(ugrid_cuda *gpu, struct CUstream_st *stream,
                                          int64_t threads, int block, size_t shared,
                                          void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    gpu->stream = stream;
    if (threads <= 0) return UGRID_OK;
    config.gridDim = dim3((unsigned)((threads + block - 1) / block));
    config.blockDim = dim3((unsigned)block);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    return ugrid_i_launch_config(gpu, config, kernel, arguments...);
}

template <class... Parameters, class... Arguments>
static ugrid_result ugrid_i_launch(ugrid_cuda *gpu, struct CUstream_st *stream, int64_t threads,
                                   int block, void (*kernel)(Parameters...), Arguments... arguments)
{
    return ugrid_i_launch_shared(gpu, stream, threads, block, 0, kernel, arguments...);
}

/* ----------------------------------------------------------------------------------------------
   >>each: the walk of a ugrid_device, and a functor for each contact
   ---------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ ugrid_near ugrid_near_within(const ugrid_device *device,
                                                               const ugrid_real *p,
                                                               ugrid_real radius)
{
    return ugrid_near_within(&device->grid, p, radius);
}
static __device__ __forceinline__ ugrid_near ugrid_near_point(const ugrid_device *device,
                                                              const ugrid_real *p)
{
    return ugrid_near_point(&device->grid, p);
}
static __device__ __forceinline__ ugrid_near ugrid_near_place(const ugrid_device *device,
                                                              int32_t place, ugrid_real radius)
{
    return ugrid_near_place(&device->grid, place, radius);
}
static __device__ __forceinline__ ugrid_near ugrid_near_half(const ugrid_device *device,
                                                             int32_t place, ugrid_real radius)
{
    return ugrid_near_half(&device->grid, place, radius);
}
static __device__ __forceinline__ ugrid_near ugrid_near_overlaps(const ugrid_device *device,
                                                                 int32_t place)
{
    return ugrid_near_overlaps(&device->grid, place);
}
static __device__ __forceinline__ ugrid_near ugrid_near_overlaps_half(const ugrid_device *device,
                                                                      int32_t place)
{
    return ugrid_near_overlaps_half(&device->grid, place);
}

/* How a kernel finds the neighbours. The host chooses, so that each kernel is compiled for one
   way. */
enum ugrid_path {
    UGRID_PATH_WALK,    /* cell by cell, entry by entry, no axis periodic */
    UGRID_PATH_RANGES,  /* records, in the ranges of any walk */
    UGRID_PATH_STRIPS,  /* records, UGRID_STRIPS, no axis periodic: the default, and the fastest */
    UGRID_PATH_IMAGES,  /* the same, with a periodic axis */
    UGRID_PATH_FILTERED,/* as UGRID_PATH_WALK, with a filter */
    UGRID_PATH_SPECIAL, /* entry by entry, any grid: by ugrid_next */
    UGRID_PATH_FILTERED_SPECIAL,
    UGRID_PATH_HASHED,  /* records, by strips of hashed cells */
    UGRID_PATHS
};

/* Is this a path entry by entry? */
UGRID_FN constexpr bool ugrid_i_by_entries(ugrid_path path)
{
    return path != UGRID_PATH_RANGES && path != UGRID_PATH_STRIPS && path != UGRID_PATH_IMAGES;
}

/* Are the cells near a point three plain loops (ugrid_i_each_near), without images? */
UGRID_FN bool ugrid_i_goes_cell_by_cell(const ugrid *grid)
{
    return !ugrid_i_is_rare(grid) && !ugrid_i_by_labels(grid) && !ugrid_i_is_periodic(grid) &&
           grid->rows == grid->n;
}

UGRID_FN ugrid_path ugrid_path_of(const ugrid *grid)
{
    if (ugrid_i_filters(grid))
        return ugrid_i_is_rare(grid) ? UGRID_PATH_FILTERED_SPECIAL : UGRID_PATH_FILTERED;
    if (ugrid_i_by_buckets(grid)) return UGRID_PATH_HASHED;
    if (!ugrid_has_ranges(grid) || !grid->record)
        return ugrid_i_goes_cell_by_cell(grid) ? UGRID_PATH_WALK : UGRID_PATH_SPECIAL;
    if (grid->desc.walk != UGRID_STRIPS) return UGRID_PATH_RANGES;
    return ugrid_i_is_periodic(grid) ? UGRID_PATH_IMAGES : UGRID_PATH_STRIPS;
}

/* The cells of a search along an axis. */
template <bool Periodic>
__device__ __forceinline__ ugrid_sweep ugrid_i_strip_sweep(const ugrid_axis &axis, ugrid_real x,
                                                           ugrid_real radius)
{
    ugrid_real const reach = radius + ugrid_i_rounding(radius);
    int32_t const low = ugrid_i_raw_coordinate(&axis, x - (reach + axis.margin)),
                  high = ugrid_i_raw_coordinate(&axis, x + (reach + axis.margin));
    return Periodic ? ugrid_i_clip_sweep(&axis, low, high) : ugrid_i_closed_sweep(&axis, low, high);
}

/* row(begin, end) for each strip around a record: a specialised form of ugrid_next_range for
   UGRID_STRIPS. `above` >= 0: only places above it (a half walk); rows below the own one are not
   read. Periodic: some axis may be. */
template <bool Periodic, class Row>
__device__ __forceinline__ void ugrid_i_each_strip(const ugrid &grid, const ugrid_real *p,
                                                   ugrid_real radius, int32_t above, Row row)
{
    const ugrid_axis &ax = grid.axis[0], &ay = grid.axis[1], &az = grid.axis[2];
    ugrid_sweep const none = {0, 1, 0};
    ugrid_sweep const x = ugrid_i_strip_sweep<Periodic>(ax, p[0], radius),
                      y = ugrid_i_strip_sweep<Periodic>(ay, p[1], radius),
                      z = grid.desc.dim == 2 ? none
                                             : ugrid_i_strip_sweep<Periodic>(az, p[2], radius);
    int32_t const own_row = above < 0 ? 0
                                      : ugrid_i_coordinate(&az, p[2]) * ay.cells +
                                            ugrid_i_coordinate(&ay, p[1]);
    /* cells at the beginning of the row */
    int32_t const wraps = Periodic ? ugrid_i_wrapped(&ax, &x) : 0, straight = x.width - wraps;
    for (int32_t turn_z = 0; turn_z < z.width; turn_z++) {
        int32_t const cell_z = Periodic ? ugrid_i_ascending(&az, &z, turn_z) : z.low + turn_z;
        for (int32_t turn_y = 0; turn_y < y.width; turn_y++) {
            int32_t const cell_y = Periodic ? ugrid_i_ascending(&ay, &y, turn_y) : y.low + turn_y;
            int32_t const row_number = cell_z * ay.cells + cell_y;
            if (row_number < own_row) continue;
            const int32_t *const start =
                grid.start +
                ugrid_i_strip_number(&grid, x.low, x.low + straight - 1, cell_y, cell_z);
            if (wraps > 0) {
                const int32_t *const first =
                    grid.start + ugrid_i_strip_number(&grid, 0, wraps - 1, cell_y, cell_z);
                row(first[0] > above ? first[0] : above + 1, first[wraps]);
            }
            row(start[0] > above ? start[0] : above + 1, start[straight]);
        }
    }
}

/* Computes the geometry of a contact between points in the box. Is it within the limit? */
template <ugrid_path Path>
__device__ __forceinline__ bool ugrid_i_touch(const ugrid &grid, const ugrid_real *p,
                                              const ugrid_real *q, ugrid_real limit,
                                              ugrid_contact &contact)
{
    for (int a = 0; a < 3; a++) {
        contact.d[a] = q[a] - p[a];
        if (Path != UGRID_PATH_STRIPS && Path != UGRID_PATH_WALK && Path != UGRID_PATH_HASHED)
            contact.d[a] = ugrid_i_nearest(contact.d[a], &grid.axis[a]);
    }
    contact.d2 = ugrid_i_square(contact.d[0], contact.d[1], contact.d[2]);
    return contact.d2 <= limit;
}

/* row(begin, end) for each range of places around the particle at `place`, whose position is p; the
   particle itself may be in one. */
template <ugrid_path Path, class Row>
__device__ __forceinline__ void ugrid_i_each_range(const ugrid &grid, const ugrid_real *p,
                                                   int32_t place, ugrid_real radius, bool half,
                                                   Row row)
{
    if (Path == UGRID_PATH_RANGES) {
        ugrid_near walk =
            half ? ugrid_near_half(&grid, place, radius) : ugrid_near_place(&grid, place, radius);
        while (ugrid_next_range(&walk)) row(walk.begin, walk.end);
    } else if (ugrid_i_point_finite(p)) {
        ugrid_i_each_strip<Path == UGRID_PATH_IMAGES>(grid, p, radius, half ? place : -1, row);
    }
}

/* f(place, q) for each entry of a cell that counts in a walk with these bits (>>walk-special), in a
   box without periodic axes. A list's next link is fetched with the position. */
template <class F>
__device__ __forceinline__ void ugrid_i_each_entry(const ugrid &grid, int32_t number, int32_t bits,
                                                   F f)
{
    int const shift = ugrid_i_tight(&grid) ? grid.desc.dim : 0;
    int32_t const mask = (bits | bits >> 4) & (grid.spans - 1);
    ugrid_real q[3];
    if (grid.head && grid.next) {
        for (int32_t entry = grid.head[number]; entry >= 0;) {
            int32_t const next = grid.next[entry];
            ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, entry >> shift, q);
            if (!(entry & mask)) f(entry >> shift, q);
            entry = next;
        }
    } else if (grid.head) {
        for (int32_t entry = grid.head[number]; entry >= 0;) {
            ugrid_record const record = ugrid_i_fetch_record(&grid.record[entry]);
            f(entry, record.x);
            entry = record.link;
        }
    } else {
        int32_t const begin = grid.slot ? 0 : grid.start[number],
                      end = grid.slot ? min(grid.count[number], grid.desc.slots)
                                      : grid.start[number + 1];
        for (int32_t k = begin; k < end; k++) {
            int32_t const entry = grid.slot ? grid.slot[ugrid_i_slot(&grid, number, k)]
                                  : shift   ? grid.order[k]
                                            : k;
            int32_t const place = entry >> shift;
            ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, ugrid_id(&grid, place), q);
            if (!(entry & mask)) f(place, q);
        }
    }
}

/* f(place, q) for every candidate around the particle at `place`, in the order of ugrid_next. half:
   as ugrid_near_half. Three loops instead of an iterator: threads of a warp go to the next cell
   together. */
template <class F>
__device__ __forceinline__ void ugrid_i_each_near(const ugrid &grid, const ugrid_real *p,
                                                  int32_t place, ugrid_real radius, bool half, F f)
{
    const ugrid_axis *const axis = grid.axis;
    ugrid_near walk = ugrid_i_near_none(&grid);
    if (!ugrid_i_is_outside(&grid, p)) walk = ugrid_i_near_at(&grid, p, radius);
    bool const above = half && (ugrid_i_sorted(&grid) || ugrid_i_tight(&grid));
    int32_t const own = half && !ugrid_i_tight(&grid) ? ugrid_cell_at(&grid, p) : -1;
    for (int32_t t = 0; t < walk.z.width; t++) {
        int32_t const z = ugrid_i_ascending(&axis[2], &walk.z, t);
        for (int32_t s = 0; s < walk.y.width; s++) {
            int32_t const y = ugrid_i_ascending(&axis[1], &walk.y, s);
            for (int32_t r = 0; r < walk.x.width; r++) {
                int32_t const x = ugrid_i_ascending(&axis[0], &walk.x, r),
                              number = (z * axis[1].cells + y) * axis[0].cells + x,
                              least = above || (half && number == own) ? place : -1;
                if (number < own) continue;
                ugrid_i_each_entry(grid, number, ugrid_i_visited_bits(&walk, x, y, z),
                                   [&](int32_t k, const ugrid_real *q) {
                                       if (k != place && k > least) f(k, q);
                                   });
            }
        }
    }
}

/* f(place, record) for the candidates of a walk through hashed cells that accept(place, record), in
   its order. A strip of cells is a range of buckets, and holds entries of other cells, too: far
   ones, and those of other strips of the walk. An entry counts in the strip of its own cell: its
   row says which, where the row has one strip. (Almost every candidate is accepted in some lane of
   a warp, so the test is on the way of all.) */
template <class Accept, class F>
__device__ __forceinline__ void ugrid_i_each_hashed(const ugrid &grid, const ugrid_near &walk,
                                                    Accept accept, F f)
{
    bool const whole = (walk.bits & UGRID_I_WHOLE) != 0;
    int32_t const buckets = grid.cell_count, low = walk.x.low, x_end = low + walk.x.width,
                  y_low = walk.y.low, y_end = y_low + walk.y.width,
                  z_end = walk.z.low + walk.z.width;
    for (int32_t z = walk.z.low; z < z_end; z++)
        for (int32_t y = y_low; y < y_end; y++)
            for (int32_t x = low, next = low; x < x_end; x = next) {
                int32_t const bucket = whole ? 0 : ugrid_i_hash(x, y, z, buckets);
                next = whole ? x_end : ugrid_i_end_of_piece(x, x_end, bucket, buckets);
                int32_t const begin = grid.start[bucket], end = grid.start[bucket + next - x];
                bool const one = x == low && next == x_end;
                for (int32_t k = begin; k < end; k++) {
                    ugrid_record const record = ugrid_i_fetch_record(&grid.record[k]);
                    if (!accept(k, record)) continue;
                    if (whole || (one ? ugrid_i_is_in_row(&grid, record.x, y, z)
                                      : ugrid_i_is_in_strip(&grid, record.x, x, next, y, z)))
                        f(k, record);
                }
            }
}

/* f(const ugrid_contact &) for every neighbour of the particle at `place`; half: each pair once
   over all places. */
template <ugrid_path Path, class F>
__device__ __forceinline__ void ugrid_for_each(const ugrid &grid, int32_t place, ugrid_real radius,
                                               bool half, F f)
{
    constexpr bool filtered = Path == UGRID_PATH_FILTERED || Path == UGRID_PATH_FILTERED_SPECIAL;
    ugrid_real p[3], q[3];
    ugrid_contact contact;
    ugrid_real const reach = filtered ? ugrid_i_largest_reach(&grid, radius) : radius,
                     limit = reach * reach;
    ugrid_point(&grid, place, p);
    contact.place_i = place;
    contact.i = ugrid_id(&grid, place);
    auto const meet = [&](int32_t other, int32_t id, const ugrid_real *q) {
        if (!ugrid_i_touch<Path>(grid, p, q, limit, contact)) return;
        if (filtered && !ugrid_i_passes(&grid, radius, half, contact.i, id, contact.d2)) return;
        contact.place_j = other;
        contact.j = id;
        f(contact);
    };
    if (Path == UGRID_PATH_WALK) {
        ugrid_i_each_near(grid, p, place, reach, half, [&](int32_t other, const ugrid_real *at) {
            meet(other, ugrid_id(&grid, other), at);
        });
    } else if (Path == UGRID_PATH_HASHED) {
        int32_t const least = half ? place : -1;
        ugrid_i_each_hashed(
            grid, ugrid_near_place(&grid, place, radius),
            [&](int32_t k, const ugrid_record &record) {
                return ugrid_i_touch<Path>(grid, p, record.x, limit, contact) && k != place &&
                       k > least;
            },
            [&](int32_t k, const ugrid_record &record) {
                contact.place_j = k;
                contact.j = record.link;
                f(contact);
            });
    } else if (ugrid_i_by_entries(Path)) {
        ugrid_near walk =
            half ? ugrid_near_half(&grid, place, reach) : ugrid_near_place(&grid, place, reach);
        while (ugrid_next(&walk)) {
            ugrid_point(&grid, walk.place, q);
            meet(walk.place, walk.id, q);
        }
    } else {
        ugrid_i_each_range<Path>(grid, p, place, radius, half, [&](int32_t begin, int32_t end) {
            for (int32_t k = begin; k < end; k++) {
                ugrid_record const record = ugrid_i_fetch_record(&grid.record[k]);
                if (!ugrid_i_touch<Path>(grid, p, record.x, limit, contact) || k == place) continue;
                contact.place_j = k;
                contact.j = record.link;
                f(contact);
            }
        });
    }
}

/* ugrid_for_each where the kernel does not know the path at compile time. */
template <class F>
__device__ __forceinline__ void ugrid_for_each(const ugrid &grid, int32_t place, ugrid_real radius,
                                               bool half, F f)
{
    if (ugrid_has_ranges(&grid) && grid.record)
        ugrid_for_each<UGRID_PATH_RANGES>(grid, place, radius, half, f);
    else if (ugrid_i_goes_cell_by_cell(&grid))
        ugrid_for_each<UGRID_PATH_WALK>(grid, place, radius, half, f);
    else ugrid_for_each<UGRID_PATH_SPECIAL>(grid, place, radius, half, f);
}

template <ugrid_path Path, class F>
__global__ void __launch_bounds__(128)
    ugrid_i_each_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius, bool half,
                        F f)
{
    int32_t const place = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (place < device.grid.n) ugrid_for_each<Path>(device.grid, place, radius, half, f);
}

template <ugrid_path Path, class T, class F>
__global__ void __launch_bounds__(128)
    ugrid_i_sum_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius, bool places,
                       F f, T *sums)
{
    int32_t const place = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    T sum = T();
    if (place >= device.grid.n) return;
    ugrid_for_each<Path>(device.grid, place, radius, false,
                         [&](const ugrid_contact &contact) { sum += f(contact); });
    sums[places ? place : ugrid_id(&device.grid, place)] = sum;
}

/* The checks of the two searches below; `known`: the flags that they have. */
static inline ugrid_result ugrid_i_check_functor(const ugrid_cuda *gpu, ugrid_real radius,
                                                 int flags, int known)
{
    ugrid_result const result = ugrid_i_check_search(&gpu->device.grid, radius, flags);
    if (flags & ~known) return UGRID_BAD_OPTION;
    return result == UGRID_OK ? ugrid_i_check_filter(&gpu->device.grid, radius) : result;
}

template <class F>
static ugrid_result ugrid_cuda_each(ugrid_cuda *gpu, ugrid_real radius, int flags, F f,
                                    struct CUstream_st *stream)
{
    if (!gpu) return UGRID_BAD_ARGUMENT;
    ugrid_result const result = ugrid_i_check_functor(gpu, radius, flags, UGRID_HALF);
    if (result != UGRID_OK) return result;
    void (*const kernels[UGRID_PATHS])(const ugrid_device, ugrid_real, bool, F) = {
        ugrid_i_each_kernel<UGRID_PATH_WALK, F>, ugrid_i_each_kernel<UGRID_PATH_RANGES, F>,
        ugrid_i_each_kernel<UGRID_PATH_STRIPS, F>, ugrid_i_each_kernel<UGRID_PATH_IMAGES, F>,
        ugrid_i_each_kernel<UGRID_PATH_FILTERED, F>, ugrid_i_each_kernel<UGRID_PATH_SPECIAL, F>,
        ugrid_i_each_kernel<UGRID_PATH_FILTERED_SPECIAL, F>,
        ugrid_i_each_kernel<UGRID_PATH_HASHED, F>};
    return ugrid_i_launch(gpu, stream, gpu->device.grid.n, 128,
                          kernels[ugrid_path_of(&gpu->device.grid)], gpu->device, radius,
                          (flags & UGRID_HALF) != 0, f);
}

template <class T, class F>
static ugrid_result ugrid_cuda_sum(ugrid_cuda *gpu, ugrid_real radius, int flags, F f, T *d_sums,
                                   struct CUstream_st *stream)
{
    if (!gpu || !d_sums) return UGRID_BAD_ARGUMENT;
    ugrid_result const result = ugrid_i_check_functor(gpu, radius, flags, UGRID_PLACES);
    if (result != UGRID_OK) return result;
    void (*const kernels[UGRID_PATHS])(const ugrid_device, ugrid_real, bool, F, T *) = {
        ugrid_i_sum_kernel<UGRID_PATH_WALK, T, F>, ugrid_i_sum_kernel<UGRID_PATH_RANGES, T, F>,
        ugrid_i_sum_kernel<UGRID_PATH_STRIPS, T, F>, ugrid_i_sum_kernel<UGRID_PATH_IMAGES, T, F>,
        ugrid_i_sum_kernel<UGRID_PATH_FILTERED, T, F>,
        ugrid_i_sum_kernel<UGRID_PATH_SPECIAL, T, F>,
        ugrid_i_sum_kernel<UGRID_PATH_FILTERED_SPECIAL, T, F>,
        ugrid_i_sum_kernel<UGRID_PATH_HASHED, T, F>};
    return ugrid_i_launch(gpu, stream, gpu->device.grid.n, 128,
                          kernels[ugrid_path_of(&gpu->device.grid)], gpu->device, radius,
                          (flags & UGRID_PLACES) != 0, f, d_sums);
}

/* ----------------------------------------------------------------------------------------------
   >>pieces: searches by strips that keep what they found as bits, for one place or for two
   (twins). Kernels of this file and of cuda/nlist.cu call them.

   A piece is a strip, or up to 32 candidates of a longer one; each has one bit, 1 = within the
   limit:

       piece w of place k:   candidates  begin .. end-1       hits[w][k]  1 0 0 1 0 1
                                                              (highest bit: begin)

   Candidates are loaded four at a time, so up to three records after the last one, too: the array
   has room for them.
   ---------------------------------------------------------------------------------------------- */


constexpr int ugrid_i_step = 4; /* candidates that are loaded at a time */

/* Where bits are kept: the first `words` pieces of each place. */
struct ugrid_i_hit_bits {
    uint32_t *hits; /* null: nowhere */
    int words;
    size_t stride;  /* of the words of a piece: see ugrid_i_word_stride */
    __device__ bool keeps(int word) const { return hits && word < words; }
    __device__ uint32_t *at(int word, int32_t place) const { return hits + word * stride + place; }
    /* The first pass has searched so many pieces. An empty word follows them, since a second pass
       fetches one ahead. */
    __device__ void end(int pieces, int32_t place) const
    {
        if (keeps(pieces)) *at(pieces, place) = 0;
    }
};

/* An even number: twins store their words together. */
static __host__ __device__ inline size_t ugrid_i_word_stride(int32_t n)
{
    return ((size_t)n + 1) / 2 * 2;
}

/* f(begin, end) for each piece of a strip. */
template <class F>
__device__ __forceinline__ void ugrid_i_cut_strip(int32_t begin, int32_t end, F f)
{
    for (; begin < end; begin += 32) f(begin, end - begin < 32 ? end : begin + 32);
}

/* test(q) for each candidate q of a piece, in whole steps: also for some after the last one. */
template <class Test>
__device__ __forceinline__ void ugrid_i_test_piece(const ugrid &grid, int32_t begin, int32_t end,
                                                   Test test)
{
    for (int32_t k = begin; k < end; k += ugrid_i_step) {
        ugrid_record record[ugrid_i_step];
#pragma unroll
        for (int t = 0; t < ugrid_i_step; t++)
            record[t] = ugrid_i_fetch_record(&grid.record[k + t]);
#pragma unroll
        for (int t = 0; t < ugrid_i_step; t++) test(record[t].x);
    }
}

/* Drops the bits of whole steps that lie after the end. */
static __device__ __forceinline__ uint32_t ugrid_i_drop_rest(uint32_t hits, int32_t begin,
                                                             int32_t end)
{
    return hits >> ((begin - end) & (ugrid_i_step - 1));
}

/* The hits of a piece. The particle itself is one of them, if it is in the piece. */
template <ugrid_path Path>
__device__ __forceinline__ uint32_t ugrid_i_piece_hits(const ugrid &grid, const ugrid_real *p,
                                                       ugrid_real limit, int32_t begin,
                                                       int32_t end)
{
    ugrid_contact contact;
    uint32_t hits = 0;
    ugrid_i_test_piece(grid, begin, end, [&](const ugrid_real *q) {
        hits = hits << 1 | (uint32_t)ugrid_i_touch<Path>(grid, p, q, limit, contact);
    });
    return ugrid_i_drop_rest(hits, begin, end);
}

/* The bits of a piece that the row of a place may list: not its own; half: only those above. */
static __device__ __forceinline__ uint32_t ugrid_i_listed(int32_t place, bool half, int32_t begin,
                                                          int32_t end)
{
    uint32_t const own = place >= begin && place < end ? 1u << (end - 1 - place) : 0;
    return half && own ? own - 1 : ~own;
}

/* The second pass over the pieces of a place: put(k) for each place k within the limit, in order.
   each(f) calls f(begin, end, find) for its pieces; find() gives the bits of one that was not
   kept. A word is fetched while the bits of the one before it are taken. */
template <class Each, class Put>
__device__ __forceinline__ void ugrid_i_second_pass(const ugrid_i_hit_bits &kept, int32_t place,
                                                    Each each, Put put)
{
    int piece = 0;
    uint32_t next = kept.keeps(0) ? *kept.at(0, place) : 0;
    each([&](int32_t, int32_t end, auto find) {
        uint32_t left = kept.keeps(piece) ? next : find();
        piece++;
        if (kept.keeps(piece)) next = *kept.at(piece, place);
        while (left) {
            int const bit = 31 - __clz((int)left);
            left ^= 1u << bit;
            put(end - 1 - bit);
        }
    });
}

/* Exclusive prefix sum of x over the warp. At each distance a lane adds the partial sum of the lane
   that far below, so that it holds the sum of 2, 4, 8, ... lanes up to itself. At the end its own x
   is subtracted. */
static __device__ __forceinline__ int32_t ugrid_i_warp_prefix(int32_t x)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t sum = x;
    for (int distance = 1; distance < 32; distance *= 2) {
        int32_t const lower = __shfl_up_sync(0xFFFFFFFFu, sum, distance);
        if (lane >= distance) sum += lower;
    }
    return sum - x;
}

/* Twins: a thread searches for two particles, places 2t and 2t+1, since candidates that are loaded
   once for both halve what limits a search, the loads. (This is in none of the sources.)

   Neighbours in a row of cells have nearly the same strips: both are tested against the strips of
   the cells that either needs. Where the two are apart, at the end of a row, all lanes of the warp
   search for the second. For many particles in long rows, without periodic axes, in float. */

/* Fewer particles leave multiprocessors idle. In shorter rows, too many twins are apart. */
#ifdef CUDA_EMU
constexpr int32_t ugrid_i_twins_least = 64, ugrid_i_twins_row = 2;
#else
constexpr int32_t ugrid_i_twins_least = 1 << 18, ugrid_i_twins_row = 128;
#endif

/* Are places of this grid searched for as twins? */
static inline bool ugrid_i_twins(const ugrid *grid, ugrid_path path)
{
    return path == UGRID_PATH_STRIPS && UGRID_I_REAL_KIND == 1 && grid->n >= ugrid_i_twins_least &&
           grid->n / ugrid_i_twins_row / grid->axis[1].cells >= grid->axis[2].cells;
}

/* Cells of a search, both ends included. */
struct ugrid_i_box {
    int32_t x0, x1, y0, y1, z0, z1;
};

/* Empty for a particle that is in no cell or does not exist. */
static __device__ __forceinline__ ugrid_i_box ugrid_i_box_of(const ugrid &grid, const ugrid_real *p,
                                                             ugrid_real radius, bool exists)
{
    ugrid_sweep const x = ugrid_i_strip_sweep<false>(grid.axis[0], p[0], radius),
                      y = ugrid_i_strip_sweep<false>(grid.axis[1], p[1], radius),
                      z = ugrid_i_strip_sweep<false>(grid.axis[2], p[2], radius);
    if (!exists || !ugrid_i_point_finite(p)) return {0, -1, 0, -1, 0, -1};
    return {x.low, x.low + x.width - 1, y.low, y.low + y.width - 1, z.low, z.low + z.width - 1};
}

static __device__ __forceinline__ bool ugrid_i_are_apart(const ugrid_i_box &a, const ugrid_i_box &b)
{
    return a.x0 > b.x1 || b.x0 > a.x1 || a.y0 > b.y1 || b.y0 > a.y1 || a.z0 > b.z1 || b.z0 > a.z1;
}

static __device__ __forceinline__ ugrid_i_box ugrid_i_join(const ugrid_i_box &a,
                                                           const ugrid_i_box &b)
{
    return {min(a.x0, b.x0), max(a.x1, b.x1), min(a.y0, b.y0),
            max(a.y1, b.y1), min(a.z0, b.z0), max(a.z1, b.z1)};
}

/* f(begin, end): the strip of a box at cells y, z, of places above `above`. */
template <class F>
__device__ __forceinline__ void ugrid_i_box_strip(const ugrid &grid, const ugrid_i_box &box,
                                                  int32_t y, int32_t z, int32_t above, F f)
{
    const int32_t *const start =
        grid.start + ugrid_i_strip_number(&grid, box.x0, box.x1, y, z);
    f(max(start[0], above + 1), start[box.x1 - box.x0 + 1]);
}

/* f(begin, end) for each piece of the strips of a box, of places above `above`. */
template <class F>
__device__ __forceinline__ void ugrid_i_each_piece(const ugrid &grid, const ugrid_i_box &box,
                                                   int32_t above, F f)
{
    for (int32_t z = box.z0; z <= box.z1; z++)
        for (int32_t y = box.y0; y <= box.y1; y++)
            ugrid_i_box_strip(grid, box, y, z, above, [&](int32_t begin, int32_t end) {
                ugrid_i_cut_strip(begin, end, f);
            });
}

/* The hits of a piece for two points by fused operations, of which there are three fewer each: the
   sign of x*x + y*y + z*z - limit. Let u = 2^-24, and S the sum of the squares without rounding. Up
   to S = 2 limit, the three roundings here change it by at most 6 u limit, and those of
   ugrid_i_square by 7 u limit; above, both are far from the limit. So the sign is right where the
   result exceeds 16 u limit (ugrid_i_rounding); FLT_MIN is for numbers so small that they have
   fewer digits. Otherwise (one piece of some thousand) the piece is tested as everywhere. */
static __device__ __forceinline__ void ugrid_i_twin_hits(const ugrid &grid,
                                                         const ugrid_record own[2],
                                                         ugrid_real limit, int32_t begin,
                                                         int32_t end, uint32_t found[2])
{
    ugrid_real closest = limit;
    found[0] = found[1] = 0;
    ugrid_i_test_piece(grid, begin, end, [&](const ugrid_real *q) {
#pragma unroll
        for (int t = 0; t < 2; t++) {
            ugrid_real const x = q[0] - own[t].x[0], y = q[1] - own[t].x[1],
                             z = q[2] - own[t].x[2];
            float const excess =
                __fmaf_rn((float)z, (float)z,
                          __fmaf_rn((float)y, (float)y,
                                    __fmaf_rn((float)x, (float)x, -(float)limit)));
            found[t] = found[t] << 1 | __float_as_uint(excess) >> 31;
            closest = min(closest, (ugrid_real)fabsf(excess));
        }
    });
    bool const sure = closest > ugrid_i_rounding(limit) + (ugrid_real)FLT_MIN;
#pragma unroll
    for (int t = 0; t < 2; t++)
        found[t] = sure ? ugrid_i_drop_rest(found[t], begin, end)
                        : ugrid_i_piece_hits<UGRID_PATH_STRIPS>(grid, own[t].x, limit, begin, end);
}

/* All lanes of a warp search for one place, each in other strips. Returns how many neighbours it
   has. */
static __device__ __forceinline__ int32_t
ugrid_i_search_alone(const ugrid &grid, int32_t place, ugrid_real radius, ugrid_real limit,
                     bool half, const ugrid_i_hit_bits &kept)
{
    ugrid_record const own = ugrid_i_fetch_record(&grid.record[place]);
    ugrid_i_box const box = ugrid_i_box_of(grid, own.x, radius, true);
    int const lane = (int)(threadIdx.x % 32);
    int32_t const width = box.y1 - box.y0 + 1, strips = width * (box.z1 - box.z0 + 1);
    int32_t words = 0, length = 0;
    for (int32_t first = 0; first < strips; first += 32) {
        int32_t const strip = first + lane;
        int32_t begin = 0, end = 0;
        if (strip < strips)
            ugrid_i_box_strip(grid, box, box.y0 + strip % width, box.z0 + strip / width,
                              half ? place : -1,
                              [&](int32_t from, int32_t to) { begin = from, end = to; });
        int32_t const pieces = begin < end ? (end - begin + 31) / 32 : 0;
        int32_t word = words + ugrid_i_warp_prefix(pieces);
        words = __shfl_sync(0xFFFFFFFFu, word + pieces, 31);
        ugrid_i_cut_strip(begin, end, [&](int32_t from, int32_t to) {
            uint32_t const found =
                ugrid_i_piece_hits<UGRID_PATH_STRIPS>(grid, own.x, limit, from, to) &
                ugrid_i_listed(place, half, from, to);
            if (kept.keeps(word)) *kept.at(word, place) = found;
            word++;
            length += __popc(found);
        });
    }
    if (lane == 0) kept.end(words, place);
    return __shfl_sync(0xFFFFFFFFu, ugrid_i_warp_prefix(length) + length, 31);
}

/* Searches for place and place + 1, whose records are own[0 .. 1], as far as they exist. All lanes
   of a warp call this. length: how many neighbours each has. */
static __device__ __forceinline__ void ugrid_i_search_twins(const ugrid &grid, int32_t place,
                                                            const ugrid_record own[2],
                                                            ugrid_real radius, ugrid_real limit,
                                                            bool half, const ugrid_i_hit_bits &kept,
                                                            int32_t length[2])
{
    bool const two = place + 1 < grid.n;
    ugrid_i_box const first = ugrid_i_box_of(grid, own[0].x, radius, place < grid.n),
                      second = ugrid_i_box_of(grid, own[1].x, radius, two);
    bool const apart = ugrid_i_are_apart(first, second);
    int word = 0;
    length[0] = length[1] = 0;
    ugrid_i_each_piece(
        grid, apart ? first : ugrid_i_join(first, second), half ? place : -1,
        [&](int32_t begin, int32_t end) {
            uint32_t found[2];
            ugrid_i_twin_hits(grid, own, limit, begin, end, found);
#pragma unroll
            for (int t = 0; t < 2; t++) {
                found[t] &= ugrid_i_listed(place + t, half, begin, end);
                length[t] += __popc(found[t]);
            }
            if (kept.keeps(word) && apart) *kept.at(word, place) = found[0];
            else if (kept.keeps(word))
                *reinterpret_cast<uint2 *>(kept.at(word, place)) = make_uint2(found[0], found[1]);
            word++;
        });
    if (place < grid.n) kept.end(word, place);
    if (!apart) kept.end(word, place + 1);
    for (unsigned left = __ballot_sync(0xFFFFFFFFu, apart && two); left; left &= left - 1) {
        int const lane = __ffs((int)left) - 1;
        int32_t const alone = __shfl_sync(0xFFFFFFFFu, place + 1, lane);
        int32_t const found = ugrid_i_search_alone(grid, alone, radius, limit, half, kept);
        if (lane == (int)(threadIdx.x % 32)) length[1] = found;
    }
}

/* f(begin, end) for the pieces of one place that a search for twins tested. */
template <class F>
__device__ __forceinline__ void ugrid_i_each_twin_piece(const ugrid &grid, const ugrid_real *p,
                                                        int32_t place, ugrid_real radius, bool half,
                                                        F f)
{
    int32_t const twin = place ^ 1;
    bool const two = twin < grid.n;
    ugrid_record const other = ugrid_i_fetch_record(&grid.record[two ? twin : place]);
    ugrid_i_box const own = ugrid_i_box_of(grid, p, radius, true),
                      others = ugrid_i_box_of(grid, other.x, radius, two);
    bool const apart = ugrid_i_are_apart(own, others);
    ugrid_i_each_piece(grid, apart ? own : ugrid_i_join(own, others),
                       !half   ? -1
                       : apart ? place
                               : place & ~1,
                       f);
}

#else /* the second part, for UGRID_IMPLEMENTATION */

#ifndef CUDA_EMU
#include <cooperative_groups.h>
#endif
#include <cuda_runtime.h>
#include <cub/cub.cuh>

#include <algorithm>
#include <climits>
#include <cstring>

namespace {

/* 256 threads: the kernels with this block size share no memory, so any size is correct. 8 blocks
   fill a multiprocessor of an H200. */
constexpr int ugrid_i_block = 256;

__device__ __forceinline__ int32_t ugrid_i_thread()
{
    return (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* ----------------------------------------------------------------------------------------------
   >>memory: device memory that only grows, and what is freed
   ---------------------------------------------------------------------------------------------- */

/* Scratch blocks. SORT: keys and entries, two buffers each (the other buffer of the entries is the
   grid's order). COUNT: numbers and ranks, or the items of >>parts, or the counters of
   >>cooperative, in KEYS_A. STARTS: of cells, for FIXED from sorted entries. TEMP: temporary
   storage of CUB. */
enum {
    UGRID_I_KEYS_A,
    UGRID_I_KEYS_B,
    UGRID_I_ENTRIES_B,
    UGRID_I_STARTS,
    UGRID_I_HIT_BITS,
    UGRID_I_TEMP,
    UGRID_I_PARTS
};

/* Words of hit bits per particle in 3D and 2D (>>hits). */
constexpr int ugrid_i_words = 18, ugrid_i_words_flat = 6;

/* CUB would return a pending error of the caller as its own. So it is cleared before scans and
   sorts. */
template <class In, class Out>
cudaError_t ugrid_i_exclusive_sum(void *temp, size_t &temp_bytes, In in, Out out, int64_t m,
                                  cudaStream_t stream = nullptr)
{
    (void)cudaGetLastError();
    return cub::DeviceScan::ExclusiveSum(temp, temp_bytes, in, out, m, stream);
}

bool ugrid_i_failed(ugrid_cuda *gpu, cudaError_t error)
{
    if (error == cudaSuccess) return false;
    gpu->device.grid.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* reported */
    return true;
}

void *ugrid_i_cuda_alloc(const ugrid_cuda_allocator *allocator, size_t bytes, cudaStream_t stream)
{
    void *memory = nullptr;
    if (allocator->alloc) return allocator->alloc(bytes, stream, allocator->user);
    if (cudaMallocAsync(&memory, bytes, stream) == cudaSuccess) return memory;
    (void)cudaGetLastError(); /* a failed allocation leaves no pending error */
    return nullptr;
}

void ugrid_i_cuda_release(const ugrid_cuda_allocator *allocator, ugrid_block *block,
                          cudaStream_t stream)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, stream, allocator->user);
    else if (block->memory) (void)cudaFreeAsync(block->memory, stream);
    block->memory = nullptr;
    block->bytes = 0;
}

ugrid_result ugrid_i_cuda_grow(ugrid_cuda *gpu, ugrid_block *block, size_t bytes, int exact,
                               cudaStream_t stream)
{
    const ugrid_cuda_allocator *allocator = &gpu->device.grid.desc.cuda_allocator;
    size_t grown = ugrid_i_grown(block, bytes, exact);
    if (bytes <= block->bytes) return UGRID_OK;
    ugrid_i_cuda_release(allocator, block, stream);
    block->memory = ugrid_i_cuda_alloc(allocator, grown, stream);
    if (!block->memory && grown > bytes)
        block->memory = ugrid_i_cuda_alloc(allocator, grown = bytes, stream);
    if (!block->memory) return UGRID_OUT_OF_MEMORY;
    block->bytes = grown;
    return UGRID_OK;
}

/* Grows an array of the grid. All of it is initialised, also slots that no particle uses. */
ugrid_result ugrid_i_cuda_grow_array(ugrid_cuda *gpu, ugrid_block *block, size_t bytes, int exact,
                                     cudaStream_t stream)
{
    bool const grows = bytes > block->bytes;
    ugrid_result const result = ugrid_i_cuda_grow(gpu, block, bytes, exact, stream);
    if (result != UGRID_OK || !grows) return result;
    return ugrid_i_failed(gpu, cudaMemsetAsync(block->memory, 0xFF, block->bytes, stream))
               ? UGRID_CUDA_ERROR
               : UGRID_OK;
}

template <class T> T *ugrid_i_scratch(ugrid_cuda *gpu, int which)
{
    return static_cast<T *>(gpu->scratch[which].memory);
}

/* Does this build use a radix sort? A deterministic one always does: equal keys keep the order of
   their ids. */
bool ugrid_i_sorts(const ugrid_desc *desc)
{
    return desc->method == UGRID_SORT || desc->deterministic;
}

/* Keys are cell numbers, and cell_count for entries that are in no cell. */
int ugrid_i_key_bits(const ugrid *grid) { return ugrid_i_bit_length((uint32_t)grid->cell_count); }

cudaError_t ugrid_i_sort_pairs(void *temp, size_t &temp_bytes, cub::DoubleBuffer<uint32_t> &keys,
                               cub::DoubleBuffer<int32_t> &entries, int64_t m, int bits,
                               cudaStream_t stream)
{
    (void)cudaGetLastError();
    return cub::DeviceRadixSort::SortPairs(temp, temp_bytes, keys, entries, m, 0, bits, stream);
}

/* Temporary storage of the largest CUB call: a build of `rows` particles, or a list of as many
   rows. */
ugrid_result ugrid_i_temp_bytes(ugrid_cuda *gpu, int64_t rows, size_t *bytes)
{
    const ugrid *grid = &gpu->device.grid;
    size_t scan = 0, list = 0, sort = 0;
    cub::DoubleBuffer<uint32_t> keys;
    cub::DoubleBuffer<int32_t> entries;
    if (ugrid_i_failed(gpu,
                       ugrid_i_exclusive_sum(nullptr, scan, (int32_t *)nullptr, (int32_t *)nullptr,
                                             (int64_t)grid->cell_count + 1)))
        return UGRID_CUDA_ERROR;
    if (ugrid_i_failed(gpu, ugrid_i_exclusive_sum(nullptr, list, (int64_t *)nullptr,
                                                  (int64_t *)nullptr, rows + 1)))
        return UGRID_CUDA_ERROR;
    if (ugrid_i_sorts(&grid->desc) &&
        ugrid_i_failed(gpu, ugrid_i_sort_pairs(nullptr, sort, keys, entries, rows * grid->spans,
                                               ugrid_i_key_bits(grid), nullptr)))
        return UGRID_CUDA_ERROR;
    *bytes = scan > list ? scan : list;
    *bytes = *bytes > sort ? *bytes : sort;
    return UGRID_OK;
}

/* The offset of the facts: after the array by cell (cell_count + 1 words, rounded up to a multiple
   of 8 bytes), so that one memset clears both. The counters of >>parts follow. */
size_t ugrid_i_facts_at(const ugrid *grid)
{
    return ((size_t)grid->cell_count + 2) / 2 * 2 * sizeof(int32_t);
}

/* Scratch memory of COUNT: a number and a rank for each entry, or the record or tag of each
   particle. It has room for the larger of both, since a later build may have fewer particles. */
void ugrid_i_count_sizes(const ugrid *grid, int32_t n, size_t bytes[UGRID_BLOCKS],
                         size_t scratch[UGRID_CUDA_SCRATCH]);

ugrid_result ugrid_i_cuda_sizes(ugrid_cuda *gpu, int32_t n, size_t bytes[UGRID_BLOCKS],
                                size_t scratch[UGRID_CUDA_SCRATCH])
{
    const ugrid *grid = &gpu->device.grid;
    size_t const entries = (size_t)n * (size_t)grid->spans * sizeof(int32_t);
    bool const sorts = ugrid_i_sorts(&grid->desc),
               ordered = grid->desc.method == UGRID_SORT || grid->desc.method == UGRID_COUNT;
    ugrid_result const result = ugrid_i_sizes(grid, n, bytes);
    if (result != UGRID_OK) return result;
    bytes[UGRID_I_START] = ugrid_i_facts_at(grid) + sizeof(ugrid_cuda_facts);
    bytes[UGRID_I_WORK_A] = bytes[UGRID_I_WORK_B] = 0;
    /* searches load whole steps */
    if (bytes[UGRID_I_RECORD]) bytes[UGRID_I_RECORD] += (ugrid_i_step - 1) * sizeof(ugrid_record);
    /* sorted entries, which then become slots or lists */
    if (sorts && !ordered) bytes[UGRID_I_ORDER] = entries;
    memset(scratch, 0, UGRID_CUDA_SCRATCH * sizeof *scratch);
    if (sorts)
        scratch[UGRID_I_KEYS_A] = scratch[UGRID_I_KEYS_B] = scratch[UGRID_I_ENTRIES_B] = entries;
    else if (ordered) ugrid_i_count_sizes(grid, n, bytes, scratch);
    if (sorts && grid->desc.method == UGRID_FIXED)
        scratch[UGRID_I_STARTS] = ((size_t)grid->cell_count + 1) * sizeof(int32_t);
    return ugrid_i_temp_bytes(gpu, n, &scratch[UGRID_I_TEMP]);
}

int ugrid_i_device_attribute(cudaDeviceAttr attribute)
{
    int device = 0, value = 0;
    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess)
        return value;
    (void)cudaGetLastError(); /* an unknown attribute counts as 0 */
    return 0;
}

/* Do n items exceed half of the L2 cache? */
bool ugrid_i_exceed_cache(int32_t n, size_t item)
{
    return (int64_t)n * (int64_t)item > ugrid_i_device_attribute(cudaDevAttrL2CacheSize) / 2;
}

/* ----------------------------------------------------------------------------------------------
   >>order: are the particles nearly in cell order? So many of them that desc.coherent matters are
   sampled by each build, which writes what it saw to a word in the host's memory. The next build
   reads that word without waiting: it may be of the build before the last. A wrong guess costs
   time, once, and changes no result but the order within cells. What a CUDA graph captures is the
   same in each replay: there, only desc.coherent counts.
   ---------------------------------------------------------------------------------------------- */

/* Particles that many places apart are compared: near if they are no more than so many cells apart
   along each axis, and along x also where twice as many particles fill the cells between. In grids
   of fewer cells, particles in any order might be near. */
constexpr int ugrid_i_samples = 256;
constexpr int32_t ugrid_i_sample_step = 8, ugrid_i_sample_cells = 4;
#ifdef CUDA_EMU
constexpr int32_t ugrid_i_order_cells = 1 << 12;
#else
constexpr int32_t ugrid_i_order_cells = 1 << 16;
#endif

/* Do builds of n particles look for order? */
bool ugrid_i_seeks_order(const ugrid *grid, int32_t n)
{
    size_t const item = grid->desc.no_records ? 2 * sizeof(int32_t) : sizeof(ugrid_record);
    return grid->desc.method == UGRID_COUNT && !grid->desc.deterministic && !grid->desc.coherent &&
           !ugrid_i_tight(grid) && grid->cell_count >= ugrid_i_order_cells &&
           ugrid_i_exceed_cache(n, item);
}

/* The word, if it can be had; for none, builds take two rounds. */
void ugrid_i_reserve_order(ugrid_cuda *gpu)
{
    void *word = nullptr;
    if (gpu->near_samples) return;
    if (cudaHostAlloc(&word, sizeof(int32_t), cudaHostAllocMapped | cudaHostAllocPortable) ==
        cudaSuccess) {
        gpu->near_samples = static_cast<int32_t *>(word);
        *gpu->near_samples = 0;
    } else (void)cudaGetLastError();
}

/* Where this build writes what it sees; null: nowhere. */
int32_t *ugrid_i_samples_to(const ugrid_cuda *gpu)
{
    bool const seeks = ugrid_i_seeks_order(&gpu->device.grid, gpu->device.grid.n);
    return seeks ? gpu->near_samples : nullptr;
}

/* Did an earlier build find the particles nearly in order? */
bool ugrid_i_builds_in_order(ugrid_cuda *gpu, int32_t n, cudaStream_t stream)
{
    cudaStreamCaptureStatus captures = cudaStreamCaptureStatusNone;
    if (!ugrid_i_seeks_order(&gpu->device.grid, n)) return false;
    if (cudaStreamIsCapturing(stream, &captures) != cudaSuccess) (void)cudaGetLastError();
    if (captures != cudaStreamCaptureStatusNone) return false;
    ugrid_i_reserve_order(gpu);
    return gpu->near_samples &&
           *const_cast<const volatile int32_t *>(gpu->near_samples) > ugrid_i_samples / 2;
}

/* One warp of a kernel counts near samples. */
__device__ void ugrid_i_sample_order(const ugrid &grid, int32_t *near_samples)
{
    int32_t const lane = (int32_t)(threadIdx.x % 32), last = grid.n - 1 - ugrid_i_sample_step;
    ugrid_real const cells = (ugrid_real)(grid.cell_count / grid.desc.split) / (ugrid_real)grid.n,
                     reach = ugrid_i_sample_cells * grid.desc.cell,
                     along = reach + 2 * ugrid_i_sample_step * cells * grid.desc.cell;
    int32_t near = 0;
#pragma unroll 4
    for (int32_t s = lane; s < ugrid_i_samples; s += 32) {
        int32_t const i = (int32_t)((int64_t)last * s / ugrid_i_samples);
        ugrid_real p[3], q[3];
        ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, i, p);
        ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, i + ugrid_i_sample_step, q);
        bool const is_near = fabs(p[0] - q[0]) <= along && fabs(p[1] - q[1]) <= reach &&
                             fabs(p[2] - q[2]) <= reach;
        near += __popc(__ballot_sync(0xFFFFFFFFu, is_near));
    }
    if (lane == 0) *near_samples = near;
}

/* ----------------------------------------------------------------------------------------------
   >>split: desc.method, desc.split and desc.cell where the caller leaves them open

   A search by strips tests whole cells. Cells cut into 4 along x end closer to its radius: a
   quarter fewer tests with cells of the radius, but four times as many cells to build. This pays
   where cells are crowded (bench_ugrid --only defaults: counts and lists of 29 neighbours and more,
   from 40,000 particles on, take 0.67 to 0.93 of the time, a build 0.7 to 1.3 times).
   Deterministic grids are those of the serial code, which is slower with split: they have none.

   A cell is crowded by the mean of all cells, or as particles see it: each sees the others of its
   cell. In water that fills the bottom of a box they see 10 others, where the cells, most of them
   air, have 1.4. The first build of half a million particles that could cut its cells samples its
   positions for that, and waits for the stream (0.04 ms on an H200); later ones take what it saw,
   or the last ugrid_cuda_check, which samples the built grid. So equal calls give equal cells,
   whatever the timing. A build that is captured in a CUDA graph cannot wait: it takes what was seen
   before.
   ---------------------------------------------------------------------------------------------- */

constexpr int32_t ugrid_i_split_into = 4;
#ifdef CUDA_EMU
constexpr int32_t ugrid_i_split_least = 1 << 12, ugrid_i_ask_least = 1 << 13,
                  ugrid_i_drawn = 1 << 11;
#else
constexpr int32_t ugrid_i_split_least = 1 << 15, ugrid_i_ask_least = 1 << 19,
                  ugrid_i_drawn = 1 << 16;
#endif

/* Particles in a crowded cell. */
constexpr int32_t ugrid_i_split_crowd(int dim) { return dim == 2 ? 8 : 6; }

/* Can split pay for n particles in this grid, whose cells are not cut? Four cells a particle are
   the most. */
bool ugrid_i_split_possible(const ugrid *grid, int32_t n)
{
    const ugrid_desc *desc = &grid->desc;
    bool const strips = desc->walk == UGRID_STRIPS && ugrid_i_has_strips(desc->cell_order),
               closed = !desc->unbounded && !desc->periodic[0] && !desc->periodic[1] &&
                        !desc->periodic[2],
               fits = ugrid_i_split_into * grid->needed_cells <= desc->max_cells &&
                      ugrid_i_split_into * (double)grid->axis[0].cells <= UGRID_I_AXIS_CELLS;
    return strips && closed && fits && desc->placement == UGRID_LOOSE &&
           !desc->deterministic && n >= ugrid_i_split_least && n >= grid->needed_cells;
}

/* Cells per unit of volume (2D: of area). */
double ugrid_i_cells_per_volume(const ugrid *grid)
{
    double cells = 1;
    for (int a = 0; a < grid->desc.dim; a++) cells *= (double)grid->axis[a].per_cell;
    return cells;
}

/* Does it pay, where it can? By the mean, or by what was seen. */
bool ugrid_i_split_pays(const ugrid_cuda *gpu, int32_t n)
{
    const ugrid *grid = &gpu->device.grid;
    int32_t const crowd = ugrid_i_split_crowd(grid->desc.dim);
    return n / crowd >= grid->needed_cells || gpu->crowd >= crowd * ugrid_i_cells_per_volume(grid);
}

/* The cell, where it is open: the radius, or what holds 2 particles, as they see it where they are
   crowded; but so that n cells are the most. Arrays that must be those of the serial build have its
   cell. (The smaller ones that it takes in a crowd would cost the searches by 9 strips, or 3, that
   are the fastest on a GPU.) */
ugrid_real ugrid_i_cuda_cell(const ugrid_desc *desc, double crowd, int32_t n)
{
    if (desc->deterministic || desc->method == UGRID_SORT) return ugrid_i_fit_cell(desc, n);
    double const even = (double)ugrid_i_fit_evenly(desc, n), least = 0.8 * even;
    double cell = even;
    if (crowd > 0 && n <= desc->max_cells)
        cell = std::min(even, std::max(least, ugrid_i_root(2 / crowd, desc->dim)));
    return std::max((ugrid_real)cell, desc->radius);
}

/* One block samples particles: how many others are in the cell of each? */
constexpr int ugrid_i_crowd_block = 1024, ugrid_i_crowd_samples = 4 * ugrid_i_crowd_block;

__global__ void __launch_bounds__(ugrid_i_crowd_block)
    ugrid_i_crowd_kernel(__grid_constant__ const ugrid_device device, ugrid_cuda_facts *facts)
{
    __shared__ unsigned long long others;
    const ugrid &grid = device.grid;
    if (threadIdx.x == 0) others = 0;
    __syncthreads();
    for (int s = (int)threadIdx.x; s < ugrid_i_crowd_samples; s += ugrid_i_crowd_block) {
        int32_t const place = (int32_t)((int64_t)grid.n * s / ugrid_i_crowd_samples);
        if (place >= grid.start[grid.cell_count]) continue; /* it is in no cell */
        int32_t const number = ugrid_cell_at(&grid, grid.record[place].x);
        atomicAdd(&others,
                  (unsigned long long)(grid.start[number + 1] - grid.start[number] - 1));
    }
    __syncthreads();
    if (threadIdx.x == 0) facts->others = (int64_t)others;
}

/* For ugrid_cuda_check, which fetches the facts next. */
ugrid_result ugrid_i_sample_crowd(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    if (!gpu->may_split || !grid->built || !grid->record) return UGRID_OK;
    return ugrid_i_launch(gpu, stream, ugrid_i_crowd_block, ugrid_i_crowd_block,
                          ugrid_i_crowd_kernel, gpu->device, gpu->d_facts);
}

/* Particles drawn at random, the same ones whenever n is the same: `others` is how often two of
   them are in one cell. A particle may be drawn twice. */
constexpr int32_t ugrid_i_draws = 1 << 30;

__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_draw_kernel(__grid_constant__ const ugrid_device device, ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t const s = (int32_t)ugrid_i_thread();
    ugrid_real p[3];
    if (s >= ugrid_i_drawn) return;
    int32_t const i = (int32_t)((int64_t)ugrid_i_hash(0, s, 0, ugrid_i_draws) * grid.n /
                                ugrid_i_draws);
    ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, i, p);
    if (!ugrid_i_point_finite(p) || ugrid_i_is_outside(&grid, p)) return;
    int32_t const before = atomicAdd(&grid.start[ugrid_cell_at(&grid, p)], 1);
    if (before > 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(&facts->others),
                  (unsigned long long)before);
}

/* Should this build, whose memory is prepared, look at its positions before it chooses? Where the
   mean has decided, or for few particles, it would cost more than it saves. */
bool ugrid_i_asks_crowd(const ugrid_cuda *gpu, int32_t n, cudaStream_t stream)
{
    cudaStreamCaptureStatus captures = cudaStreamCaptureStatusNone;
    if (!gpu->may_split || gpu->device.grid.desc.split > 1) return false;
    if (gpu->crowd_known || n < ugrid_i_ask_least) return false;
    if (cudaStreamIsCapturing(stream, &captures) != cudaSuccess) (void)cudaGetLastError();
    return captures == cudaStreamCaptureStatusNone;
}

ugrid_result ugrid_i_fetch_facts(ugrid_cuda *gpu, ugrid_cuda_facts *facts, cudaStream_t stream);

/* Sets gpu->crowd by a sample of the positions. Of m particles drawn, each of them is in one cell
   with m (c + 1) / n others on average, where c others share the cell of a particle. */
ugrid_result ugrid_i_learn_crowd(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    double const drawn = ugrid_i_drawn;
    ugrid_cuda_facts facts;
    if (ugrid_i_failed(gpu, cudaMemsetAsync(grid->start, 0,
                                            ugrid_i_facts_at(grid) + sizeof facts, stream)))
        return UGRID_CUDA_ERROR;
    ugrid_result result = ugrid_i_launch(gpu, stream, ugrid_i_drawn, ugrid_i_block,
                                         ugrid_i_draw_kernel, gpu->device, gpu->d_facts);
    if (result == UGRID_OK) result = ugrid_i_fetch_facts(gpu, &facts, stream);
    if (result != UGRID_OK) return result;
    double const others = 2 * (double)facts.others * grid->n / (drawn * drawn) - 1;
    gpu->crowd = (others > 0 ? others : 0) * ugrid_i_cells_per_volume(grid);
    gpu->crowd_known = 1;
    return UGRID_OK;
}

const char *ugrid_i_cuda_reason(const ugrid_desc *desc, bool automatic, bool split, bool in_order)
{
    static const char *const counts[2][2] = {
        {"COUNT: one atomic per particle costs less than the passes of a sort",
         "COUNT: one atomic per particle costs less than the passes of a sort; in one round: an "
         "earlier build found the particles nearly in cell order"},
        {"COUNT: one atomic per particle costs less than the passes of a sort; split 4: many "
         "particles in crowded cells, and shorter strips save tests",
         "COUNT: one atomic per particle costs less than the passes of a sort; split 4: many "
         "particles in crowded cells, and shorter strips save tests; in one round: an earlier "
         "build found the particles nearly in cell order"}};
    if (!automatic) return "chosen by the caller";
    if (desc->deterministic) return "SORT: a stable sort gives the same bits every time";
    return counts[split][in_order];
}

/* Cells, method and split for n particles. */
ugrid_result ugrid_i_cuda_resolve(ugrid_cuda *gpu, int32_t n, cudaStream_t stream)
{
    ugrid *grid = &gpu->device.grid;
    bool const automatic = grid->desc.method == UGRID_AUTO, open = grid->desc.split == 0;
    if (automatic) grid->desc.method = grid->desc.deterministic ? UGRID_SORT : UGRID_COUNT;
    if (open) grid->desc.split = 1;
    bool const given = grid->desc.cell != 0;
    if (!given) grid->desc.cell = ugrid_i_cuda_cell(&grid->desc, gpu->crowd, n);
    grid->cell_reason = given ? "chosen by the caller"
                              : ugrid_i_cell_reason(&grid->desc, grid->desc.unbounded);
    ugrid_result result = ugrid_i_resolve(grid, n);
    gpu->may_split =
        automatic && open && result == UGRID_OK && ugrid_i_split_possible(grid, n);
    bool const split = gpu->may_split && ugrid_i_split_pays(gpu, n);
    if (split) {
        grid->desc.split = ugrid_i_split_into;
        result = ugrid_i_resolve(grid, n);
    }
    bool const in_order = result == UGRID_OK && ugrid_i_builds_in_order(gpu, n, stream);
    gpu->in_order = grid->desc.coherent || in_order;
    grid->reason = ugrid_i_cuda_reason(&grid->desc, automatic, split, in_order);
    return result;
}

/* Cells, method and device memory for n particles; `exact` as in ugrid_i_prepare. */
ugrid_result ugrid_i_cuda_prepare(ugrid_cuda *gpu, int32_t n, int exact, cudaStream_t stream)
{
    ugrid *grid = &gpu->device.grid;
    size_t bytes[UGRID_BLOCKS], scratch[UGRID_CUDA_SCRATCH];
    ugrid_result result = ugrid_i_cuda_resolve(gpu, n, stream);
    if (result == UGRID_OK) result = ugrid_i_cuda_sizes(gpu, n, bytes, scratch);
    for (int b = 0; b < UGRID_BLOCKS && result == UGRID_OK; b++)
        result = ugrid_i_cuda_grow_array(gpu, &gpu->block[b], bytes[b], exact, stream);
    for (int b = 0; b < UGRID_CUDA_SCRATCH && result == UGRID_OK; b++)
        result = ugrid_i_cuda_grow(gpu, &gpu->scratch[b], scratch[b], exact, stream);
    if (result != UGRID_OK) return result;
    ugrid_i_bind(grid, gpu->block);
    gpu->d_facts = reinterpret_cast<ugrid_cuda_facts *>(
        static_cast<char *>(gpu->block[UGRID_I_START].memory) + ugrid_i_facts_at(grid));
    return UGRID_OK;
}

/* Empties the grid and stores a checked desc, as ugrid_i_begin does for the host; split stays open
   where the caller left it so. */
ugrid_result ugrid_i_cuda_begin(ugrid_cuda *gpu, const ugrid_desc *desc, cudaStream_t stream)
{
    ugrid *grid = &gpu->device.grid;
    ugrid_cuda_allocator const had = grid->desc.cuda_allocator;
    gpu->stream = stream;
    bool holds = false;
    for (int b = 0; b < UGRID_BLOCKS; b++) holds |= gpu->block[b].memory != nullptr;
    for (int b = 0; b < UGRID_CUDA_SCRATCH; b++) holds |= gpu->scratch[b].memory != nullptr;
    ugrid_result const result = ugrid_i_begin(grid, desc);
    grid->entries = -1;
    if (result != UGRID_OK) return result;
    if (!desc || desc->split == 0) grid->desc.split = 0;
    if (grid->desc.rows != 0) return UGRID_BAD_ROWS;
    ugrid_cuda_allocator const given = grid->desc.cuda_allocator;
    if (holds && (had.alloc != given.alloc || had.free != given.free || had.user != given.user)) {
        grid->desc.cuda_allocator = had;
        return UGRID_BAD_ALLOCATOR;
    }
    if (!grid->desc.unbounded && !ugrid_i_box_given(&grid->desc)) return UGRID_BAD_BOX;
    return grid->desc.cell == 0 && grid->desc.radius == 0 ? UGRID_BAD_CELL : UGRID_OK;
}

/* Samples the positions of a build, and prepares it anew where its cells are crowded. */
ugrid_result ugrid_i_choose_again(ugrid_cuda *gpu, const ugrid_desc *desc, cudaStream_t stream)
{
    ugrid *grid = &gpu->device.grid;
    ugrid const before = *grid;
    ugrid_result result = ugrid_i_learn_crowd(gpu, stream);
    if (result != UGRID_OK) return result;
    if (desc && desc->cell > 0 && !ugrid_i_split_pays(gpu, before.n)) return result;
    result = ugrid_i_cuda_begin(gpu, desc, stream);
    if (result == UGRID_OK) result = ugrid_i_cuda_prepare(gpu, before.n, 0, stream);
    grid->pos = before.pos;
    grid->stride = before.stride;
    grid->n = grid->rows = before.n;
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>fit: the box and the cell, from the points
   ---------------------------------------------------------------------------------------------- */

/* Maps reals to integers of the same order, for atomicMin and atomicMax: negative ones have all
   bits flipped, others the sign. */
#if UGRID_I_REAL_KIND == 1
typedef unsigned int ugrid_i_ordered;
__device__ ugrid_i_ordered ugrid_i_order_of(float x)
{
    unsigned int const bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
#else
typedef unsigned long long ugrid_i_ordered;
__device__ ugrid_i_ordered ugrid_i_order_of(double x)
{
    unsigned long long const bits = (unsigned long long)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
#endif

ugrid_real ugrid_i_real_of(ugrid_i_ordered order)
{
    ugrid_i_ordered const sign = (ugrid_i_ordered)1 << (8 * sizeof order - 1),
                          bits = order & sign ? order ^ sign : ~order;
    ugrid_real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

struct ugrid_i_extent {
    ugrid_i_ordered min[3], max[3];
    unsigned int bad_id;
    ugrid_real sample[UGRID_I_SAMPLED][3]; /* by part: ugrid_i_sampled */
};

__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_extent_kernel(const ugrid_real *pos, size_t stride, int dim, int32_t n,
                          ugrid_i_extent *extent)
{
    ugrid_real low[3] = {0, 0, 0}, high[3] = {0, 0, 0}, p[3];
    int32_t const parts = ugrid_i_sample_parts(n);
    bool any = false;
    for (int32_t k = (int32_t)ugrid_i_thread(); k < parts; k += gridDim.x * blockDim.x)
        ugrid_i_load(pos, stride, dim, ugrid_i_sampled(n, parts, k), extent->sample[k]);
    for (int64_t i = ugrid_i_thread(); i < n; i += gridDim.x * blockDim.x) {
        ugrid_i_load(pos, stride, dim, (int32_t)i, p);
        if (!ugrid_i_point_finite(p)) {
            atomicMin(&extent->bad_id, (unsigned int)i);
            continue;
        }
        for (int a = 0; a < 3; a++) {
            low[a] = any && low[a] < p[a] ? low[a] : p[a];
            high[a] = any && high[a] > p[a] ? high[a] : p[a];
        }
        any = true;
    }
    if (!any) return;
    for (int a = 0; a < dim; a++) {
        atomicMin(&extent->min[a], ugrid_i_order_of(low[a]));
        atomicMax(&extent->max[a], ugrid_i_order_of(high[a]));
    }
}

ugrid_result ugrid_i_measure_extent(const ugrid_desc *desc, const ugrid_real *d_pos, size_t stride,
                                    int32_t n, cudaStream_t stream, ugrid_i_extent *extent)
{
    /* each loops over many points, so that few atomics remain */
    constexpr int64_t threads = 64 * 1024;
    /* receives the error of the launch: there is no grid yet */
    ugrid_cuda none = {};
    ugrid_block block = {ugrid_i_cuda_alloc(&desc->cuda_allocator, sizeof *extent, stream),
                         sizeof *extent};
    if (!block.memory) return UGRID_OUT_OF_MEMORY;
    ugrid_i_extent *const d_extent = static_cast<ugrid_i_extent *>(block.memory);
    memset(extent, 0xFF, sizeof *extent); /* min: the largest value; bad_id: none */
    memset(extent->max, 0, sizeof extent->max);
    bool ok = cudaMemcpyAsync(d_extent, extent, sizeof *extent, cudaMemcpyHostToDevice, stream) ==
              cudaSuccess;
    ok = ok &&
         ugrid_i_launch(&none, stream, n < threads ? n : threads, ugrid_i_block,
                        ugrid_i_extent_kernel, d_pos, stride, desc->dim, n, d_extent) == UGRID_OK;
    ok = ok && cudaMemcpyAsync(extent, d_extent, sizeof *extent, cudaMemcpyDeviceToHost, stream) ==
                   cudaSuccess;
    ok = cudaStreamSynchronize(stream) == cudaSuccess && ok;
    ugrid_i_cuda_release(&desc->cuda_allocator, &block, stream);
    return ok ? UGRID_OK : UGRID_CUDA_ERROR;
}

/* ----------------------------------------------------------------------------------------------
   >>build: keys, counts, and the arrays of each method
   ---------------------------------------------------------------------------------------------- */

/* Reports a particle that is in no cell. The first such particle has the largest INT_MAX - i; 0, as
   memset leaves it, means none. */
__device__ void ugrid_i_report_bad(ugrid_cuda_facts *facts, int32_t i)
{
    atomicMax(&facts->first_bad, INT_MAX - i);
    atomicAdd(&facts->invalid, 1);
}

/* Reports particle i, at p, if it is in no cell: 1 where it is. */
__device__ bool ugrid_i_has_no_cell(const ugrid &grid, const ugrid_real p[3], int32_t i,
                                    ugrid_cuda_facts *facts)
{
    if (!ugrid_i_point_finite(p)) {
        ugrid_i_report_bad(facts, i);
        return true;
    }
    if (!ugrid_i_is_outside(&grid, p)) return false;
    atomicMax(&facts->first_outside, INT_MAX - i);
    atomicAdd(&facts->outside, 1);
    return true;
}

/* The cell number of entry e; cell_count for a particle that is in no cell, and -1 for an unused
   entry. */
__device__ int32_t ugrid_i_number_of(const ugrid &grid, int32_t e, ugrid_cuda_facts *facts)
{
    ugrid_real p[3];
    bool const loose = !ugrid_i_tight(&grid);
    /* the division would be a third of the kernel's instructions */
    int32_t const i = loose ? e : e / grid.spans;
    ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, i, p);
    if (!loose && e != i * grid.spans) /* reported once */
        return ugrid_i_entry_number(&grid, p, i, e - i * grid.spans);
    if (ugrid_i_has_no_cell(grid, p, i, facts)) return loose ? grid.cell_count : -1;
    return loose ? ugrid_cell_at(&grid, p)
                 : ugrid_i_entry_number(&grid, p, i, e - i * grid.spans);
}

/* counter[number]++ for each thread of a warp. Returns the value before, as if the threads came one
   after another. Consecutive lanes with the same number make one atomic together; particles in cell
   order have many such runs. (Blog, Voting and Shuffling. There all lanes of one number are
   combined, here only runs, for which one ballot is enough.)

       number   5 5 5 7 7 2        leaders  x . . x . x        one atomicAdd of 3, of 2, of 1
       lane     0 1 2 3 4 5        returned base + 0 1 2, base + 0 1, base + 0 */
__device__ int32_t ugrid_i_count_run(int32_t *counter, int32_t number, bool counts)
{
    unsigned const all = 0xFFFFFFFFu, lane = threadIdx.x % 32;
    int32_t const before = __shfl_up_sync(all, number, 1);
    bool const leads = lane == 0 || before != number;
    unsigned const leaders = __ballot_sync(all, leads);
    int const leader = 31 - __clz((int)(leaders & (0xFFFFFFFFu >> (31 - lane))));
    unsigned const later = lane == 31 ? 0 : leaders & (0xFFFFFFFEu << lane);
    int const run = (later ? __ffs((int)later) - 1 : 32) - (int)lane;
    int32_t base = 0;
    if (leads && counts) base = atomicAdd(&counter[number], run);
    return __shfl_sync(all, base, leader) + (int)lane - leader;
}

__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_count_kernel(__grid_constant__ const ugrid_device device, int32_t *numbers,
                         int32_t *ranks, ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t const e = ugrid_i_thread(), entries = grid.n * grid.spans;
    int32_t const number = e < entries ? ugrid_i_number_of(grid, e, facts) : -1;
    int32_t const rank = ugrid_i_count_run(grid.start, number, number >= 0);
    if (e >= entries) return;
    __stcs(&numbers[e], number); /* read once, in order: no use for the cache */
    __stcs(&ranks[e], rank);
}

__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_scatter_kernel(__grid_constant__ const ugrid_device device, const int32_t *numbers,
                           const int32_t *ranks, int32_t *near_samples)
{
    const ugrid &grid = device.grid;
    int32_t const e = ugrid_i_thread();
    if (near_samples && e < 32) ugrid_i_sample_order(grid, near_samples);
    if (e >= grid.n * grid.spans) return;
    int32_t const number = __ldcs(&numbers[e]), rank = __ldcs(&ranks[e]);
    if (number >= 0) grid.order[grid.start[number] + rank] = e;
}

/* SORT and COUNT: the records and the inverse, given the order. To gather records is faster than to
   scatter them along with the order: 16-byte stores to random addresses take 2.3 times as long as
   loads from there (10M particles, H200). At 1M, where all of it fits the L2 cache, the scatter
   took 53 us against 21 + 14. */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_reorder_kernel(__grid_constant__ const ugrid_device device)
{
    const ugrid &grid = device.grid;
    int32_t const k = ugrid_i_thread();
    if (k >= grid.n) return;
    int32_t const id = grid.order[k];
    if (grid.record) grid.record[k] = ugrid_i_record(&grid, id, id);
    if (grid.inverse) grid.inverse[id] = k;
}

ugrid_result ugrid_i_cuda_reorder(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    if (ugrid_i_tight(grid) || (!grid->record && !grid->inverse)) return UGRID_OK;
    return ugrid_i_launch(gpu, stream, grid->n, ugrid_i_block, ugrid_i_reorder_kernel, gpu->device);
}

/* COUNT, a counting sort (Barbieri section 1): count, prefix sum, scatter. The value that atomicAdd
   returned, the rank of an entry in its cell, is kept: place = start + rank, and the scatter needs
   no second atomic. The last counter, of entries in no cell, becomes the end of the last cell. */
ugrid_result ugrid_i_cuda_build_count_one_round(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    int32_t *const numbers = ugrid_i_scratch<int32_t>(gpu, UGRID_I_KEYS_A);
    int64_t const entries = (int64_t)grid->n * grid->spans;
    int32_t *const ranks = numbers + entries;
    size_t temp = gpu->scratch[UGRID_I_TEMP].bytes;
    if (ugrid_i_failed(gpu, cudaMemsetAsync(grid->start, 0,
                                            ugrid_i_facts_at(grid) + sizeof *gpu->d_facts, stream)))
        return UGRID_CUDA_ERROR;
    ugrid_result result = ugrid_i_launch(gpu, stream, entries, ugrid_i_block, ugrid_i_count_kernel,
                                         gpu->device, numbers, ranks, gpu->d_facts);
    if (result != UGRID_OK) return result;
    if (ugrid_i_failed(gpu,
                       ugrid_i_exclusive_sum(gpu->scratch[UGRID_I_TEMP].memory, temp, grid->start,
                                             grid->start, (int64_t)grid->cell_count + 1, stream)))
        return UGRID_CUDA_ERROR;
    result = ugrid_i_launch(gpu, stream, entries, ugrid_i_block, ugrid_i_scatter_kernel,
                            gpu->device, numbers, ranks, ugrid_i_samples_to(gpu));
    return result == UGRID_OK ? ugrid_i_cuda_reorder(gpu, stream) : result;
}

/* ----------------------------------------------------------------------------------------------
   >>parts: COUNT in two rounds, for many particles: partition, then count in shared memory. (This
   is in none of the sources.)

   One round stores every particle at a random place, and each store moves a sector of 32 bytes. Two
   rounds use what a block can hold in shared memory:

       cells   0 1 2 3 4 5 6 7 8 9 ...        as numbered
       bins    [  0  ][  1  ][  2  ] ...      the same number of cells each (up to rounding); few
                                              enough to be counted in shared memory
       parts   [     0      ][  1  ] ...      as many bins as their particles fit shared memory

   1. Count the particles by bin. 2. A prefix sum groups the bins into parts. 3. Sort tiles of
   particles by part in shared memory, so that particles of one part are stored side by side. 4. A
   block per part sorts it by cell, and writes it and the starts of its cells. Two blocks share a
   multiprocessor up to 4 million cells and some 12 million records of 16 bytes (22 million tags).
   Beyond, a block has its shared memory alone, up to some 30 million cells or 20 million records.
   tests/bench/NOTES.md lists what was tried.
   ---------------------------------------------------------------------------------------------- */

/* The item of >>parts where the grid keeps no records. */
struct alignas(8) ugrid_i_tag {
    int32_t number, id;
};

/* The first place and the first cell of a part. One more closes the last part. */
struct ugrid_i_part {
    int32_t place, cell;
};

constexpr int ugrid_i_bins_block = 512, ugrid_i_parts_block = 1024,
              ugrid_i_order_block = 1024; /* threads of steps 1, 2 and 4 */
constexpr int ugrid_i_parts_least = 16384;                          /* particles */
constexpr int ugrid_i_bins_max = 8192, ugrid_i_parts_max = 4096;

/* What a block of step 4 orders in shared memory: at most so many items and cells. Two blocks per
   multiprocessor, or (OneBlock) one. */
template <class Thing, bool OneBlock> struct ugrid_i_shape {
    using Item = Thing;
    static constexpr bool one_block_per_sm = OneBlock;
    static constexpr int block = ugrid_i_order_block,
                         items = (OneBlock ? 128 : 80) * 1024 / (int)sizeof(Item),
                         cells = OneBlock ? 16384 : 4096, bin_cells = OneBlock ? 8192 : 512;
};

/* Step 3: particles that a block partitions at a time, 8 per thread. Large tiles need 180 KB of
   shared memory. */
template <class Item> constexpr int ugrid_i_small_tile = sizeof(Item) > 16 ? 2048 : 4096;
template <class Item> constexpr int ugrid_i_large_tile = 2 * ugrid_i_small_tile<Item>;
constexpr int ugrid_i_tile_per_thread = 8;

/* The fewest large tiles per multiprocessor; below that, small tiles. */
constexpr int ugrid_i_large_tiles_least = 4;

/* Bins and parts of a grid. The arrays are in scratch memory. */
struct ugrid_i_parts {
    int32_t bins, room;     /* number of bins; the most parts */
    uint32_t scale;         /* bin of a cell = its number * scale >> 32 */
    double bin_width;       /* 2^32 / scale */
    double target;          /* approximate number of particles of a part */
    double cells_target;    /* and of cells: room is left for the last bin, with its rounding */
    bool large_tiles, one_block_per_sm; /* see ugrid_i_shape */
    int32_t *count;         /* [bins] particles of each */
    int32_t *made;          /* [1] the number of parts */
    uint16_t *part_of;      /* [bins] */
    int32_t *cursor;        /* [room] the place of the next particle of each part */
    ugrid_i_part *part;     /* [room + 1] */
};

__device__ int32_t ugrid_i_bin_of(const ugrid_i_parts &parts, int32_t number)
{
    return (int32_t)__umulhi((uint32_t)number, parts.scale);
}

/* The first cell of a bin: the smallest number in it. */
__device__ int32_t ugrid_i_first_of_bin(const ugrid_i_parts &parts, int32_t bin)
{
    int32_t number = (int32_t)(bin * parts.bin_width); /* correct up to rounding */
    while (ugrid_i_bin_of(parts, number) < bin) number++;
    while (number > 0 && ugrid_i_bin_of(parts, number - 1) >= bin) number--;
    return number;
}

/* The cell number of a particle's point; cell_count if it is in no cell. */
__device__ int32_t ugrid_i_number_at(const ugrid &grid, const ugrid_real p[3])
{
    if (ugrid_i_is_left_out(&grid, p)) return grid.cell_count;
    return ugrid_cell_at(&grid, p);
}

__device__ int32_t ugrid_i_item_number(const ugrid &grid, const ugrid_record &item)
{
    return ugrid_i_number_at(grid, item.x);
}
__device__ int32_t ugrid_i_item_number(const ugrid &, const ugrid_i_tag &item)
{
    return item.number;
}

/* Makes the item of the particle at p. */
__device__ __forceinline__ void ugrid_i_make_item(const ugrid &grid, const ugrid_real p[3],
                                                  int32_t id, ugrid_record *item)
{
    *item = ugrid_i_record_at(&grid, p, id);
}
__device__ __forceinline__ void ugrid_i_make_item(const ugrid &grid, const ugrid_real p[3],
                                                  int32_t id, ugrid_i_tag *item)
{
    *item = {ugrid_i_number_at(grid, p), id};
}

/* Dynamic shared memory: blocks here use more than the 48 KB that may be declared. (CUDA_EMU:
   tests/emu runs kernels on the CPU.) */
__device__ __forceinline__ char *ugrid_i_shared()
{
#ifdef CUDA_EMU
    return (char *)emu_dynamic_shared();
#else
    extern __shared__ __align__(16) char ugrid_i_shared_bytes[];
    return ugrid_i_shared_bytes;
#endif
}

/* Exclusive prefix sum of x over the block, and its total in *all. `warp_sums`: shared memory, one
   word per warp and one more. */
__device__ int32_t ugrid_i_block_prefix(int32_t x, int32_t *warp_sums, int32_t *all)
{
    int const lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32),
              warps = (int)(blockDim.x / 32);
    int32_t const before = ugrid_i_warp_prefix(x);
    if (lane == 31) warp_sums[warp] = before + x;
    __syncthreads();
    if (warp == 0) {
        int32_t const sum = lane < warps ? warp_sums[lane] : 0, first = ugrid_i_warp_prefix(sum);
        __syncwarp();
        if (lane < warps) warp_sums[lane] = first;
        if (lane == 31) warp_sums[warps] = first + sum;
    }
    __syncthreads();
    int32_t const prefix = warp_sums[warp] + before;
    *all = warp_sums[warps];
    __syncthreads();
    return prefix;
}

/* Exclusive prefix sum of counters[0 .. m-1]: every thread sums a run of them. */
__device__ void ugrid_i_block_scan(int32_t *counters, int32_t m, int32_t *warp_sums)
{
    int32_t const run = (m + (int32_t)blockDim.x - 1) / (int32_t)blockDim.x;
    int32_t const from = (int32_t)threadIdx.x * run, to = from + run < m ? from + run : m;
    int32_t sum = 0, all;
    for (int32_t k = from; k < to; k++) sum += counters[k];
    int32_t before = ugrid_i_block_prefix(sum, warp_sums, &all);
    for (int32_t k = from; k < to; k++) {
        int32_t const count = counters[k];
        counters[k] = before;
        before += count;
    }
    __syncthreads();
}

/* The number of particles that a thread loads before it uses the first, to hide the latency of
   memory. */
constexpr int ugrid_i_batch = 4;

/* 1. Blocks count in shared memory and add their counters at the end (Blog, Fast Histograms).
   Particles in no cell are reported here. */
__global__ void __launch_bounds__(ugrid_i_bins_block)
    ugrid_i_bins_kernel(__grid_constant__ const ugrid_device device, ugrid_i_parts parts,
                        ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t *const count = reinterpret_cast<int32_t *>(ugrid_i_shared());
    int64_t const threads = (int64_t)gridDim.x * ugrid_i_bins_block;
    for (int32_t b = (int32_t)threadIdx.x; b < parts.bins; b += ugrid_i_bins_block) count[b] = 0;
    __syncthreads();
    for (int64_t first = ugrid_i_thread(); first < grid.n; first += ugrid_i_batch * threads) {
        ugrid_real p[ugrid_i_batch][3];
#pragma unroll
        for (int t = 0; t < ugrid_i_batch; t++) {
            int64_t const i = first + t * threads;
            ugrid_i_load(grid.pos, grid.stride, grid.desc.dim,
                         (int32_t)(i < grid.n ? i : grid.n - 1), p[t]);
        }
#pragma unroll
        for (int t = 0; t < ugrid_i_batch; t++) {
            if (first + t * threads >= grid.n) continue;
            int32_t const number = ugrid_i_number_at(grid, p[t]);
            if (number == grid.cell_count)
                (void)ugrid_i_has_no_cell(grid, p[t], (int32_t)(first + t * threads), facts);
            atomicAdd(&count[ugrid_i_bin_of(parts, number)], 1);
        }
    }
    __syncthreads();
    /* 8 counters per sector */
    for (int32_t b = (int32_t)threadIdx.x; b < parts.bins; b += ugrid_i_bins_block)
        if (count[b]) atomicAdd(&parts.count[b], count[b]);
}

/* floor(particles / target + cells / cells_target), of the particles and cells before a bin; it is
   monotone, since rounding is. A bin begins a part where this value changes, so that a part exceeds
   a target by its last bin at most. Numbers may be skipped; step 2 counts the parts. */
__device__ int32_t ugrid_i_part_number(const ugrid_i_parts &parts, int32_t particles, int32_t cells)
{
    return (int32_t)(particles / parts.target + cells / parts.cells_target);
}

/* 2. One block. Every thread handles a run of bins: the sums before it, which of its bins begin a
   part, and the numbers of these parts. */
constexpr int ugrid_i_bin_run = ugrid_i_bins_max / ugrid_i_parts_block;

__global__ void __launch_bounds__(ugrid_i_parts_block)
    ugrid_i_parts_kernel(ugrid_i_parts parts, int32_t n, int32_t cell_count)
{
    __shared__ int32_t warp_sums[ugrid_i_parts_block / 32 + 1];
    int32_t const run = (parts.bins + ugrid_i_parts_block - 1) / ugrid_i_parts_block,
                  from = (int32_t)threadIdx.x * run;
    int32_t count[ugrid_i_bin_run], first[ugrid_i_bin_run], sum = 0, all, heads = 0;
    bool head[ugrid_i_bin_run];
#pragma unroll
    for (int k = 0; k < ugrid_i_bin_run; k++) {
        bool const mine = k < run && from + k < parts.bins;
        count[k] = mine ? parts.count[from + k] : 0;
        first[k] = mine ? ugrid_i_first_of_bin(parts, from + k) : 0;
        sum += count[k];
    }
    int32_t const above = from > 0 && from < parts.bins ? parts.count[from - 1] : 0;
    int32_t const place = ugrid_i_block_prefix(sum, warp_sums, &all);
    int32_t last =
        from > 0 && from < parts.bins
            ? ugrid_i_part_number(parts, place - above, ugrid_i_first_of_bin(parts, from - 1))
            : -1;
    int32_t before = place;
#pragma unroll
    for (int k = 0; k < ugrid_i_bin_run; k++) { /* does this bin begin a part? */
        int32_t const number = ugrid_i_part_number(parts, before, first[k]);
        head[k] = k < run && from + k < parts.bins && number != last;
        heads += head[k];
        last = number;
        before += count[k];
    }
    int32_t part = ugrid_i_block_prefix(heads, warp_sums, &all) - 1;
    before = place;
#pragma unroll
    for (int k = 0; k < ugrid_i_bin_run; k++) {
        if (k >= run || from + k >= parts.bins) continue;
        if (head[k]) {
            part++;
            parts.part[part] = {before, first[k]};
            parts.cursor[part] = before;
        }
        parts.part_of[from + k] = (uint16_t)part;
        before += count[k];
    }
    if (threadIdx.x > 0) return;
    parts.part[all] = {n, cell_count + 1}; /* particles in no cell are counted in one more cell */
    *parts.made = all;
}

/* The shared memory of a block of step 3. */
template <class Item, int Tile> struct ugrid_i_tile {
    Item item[(size_t)Tile];                    /* ordered by part */
    uint16_t part[(size_t)Tile];                /* of each */
    int32_t first[ugrid_i_parts_max + 1];       /* of each part: count, then first place in the
                                                   tile */
    int32_t shift[ugrid_i_parts_max];           /* of each part: offset from the tile to the
                                                   array */
    int32_t warp_sums[(size_t)(Tile / ugrid_i_tile_per_thread / 32 + 1)];
};

/* The positions of a thread's particles of a tile; beyond the end, the last one again. */
__device__ __forceinline__ void ugrid_i_load_tile(const ugrid &grid, int64_t begin,
                                                  ugrid_real p[ugrid_i_tile_per_thread][3])
{
#pragma unroll
    for (int t = 0; t < ugrid_i_tile_per_thread; t++) {
        int64_t const i = begin + t * (int32_t)blockDim.x + (int32_t)threadIdx.x;
        ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, (int32_t)(i < grid.n ? i : grid.n - 1),
                     p[t]);
    }
}

/* 3. Sorts tile by tile by part, and stores each tile. */
template <class Item, int Tile>
__global__ void __launch_bounds__(Tile / ugrid_i_tile_per_thread)
    ugrid_i_partition_kernel(__grid_constant__ const ugrid_device device, ugrid_i_parts parts,
                             Item *parted)
{
    constexpr int per_thread = ugrid_i_tile_per_thread, block = Tile / per_thread;
    const ugrid &grid = device.grid;
    ugrid_i_tile<Item, Tile> &tile =
        *reinterpret_cast<ugrid_i_tile<Item, Tile> *>(ugrid_i_shared());
    int32_t const count = *parts.made, thread = (int32_t)threadIdx.x;
    int64_t const step = (int64_t)gridDim.x * Tile;
    ugrid_real p[per_thread][3];
    int64_t begin = (int64_t)blockIdx.x * Tile;
    if (begin < grid.n) ugrid_i_load_tile(grid, begin, p);
    for (; begin < grid.n; begin += step) {
        int32_t const size = grid.n - begin < Tile ? (int32_t)(grid.n - begin) : Tile;
        int32_t part[per_thread], rank[per_thread];
        for (int32_t q = thread; q <= count; q += block) tile.first[q] = 0;
        __syncthreads();
#pragma unroll
        for (int t = 0; t < per_thread; t++)
            part[t] = parts.part_of[ugrid_i_bin_of(parts, ugrid_i_number_at(grid, p[t]))];
#pragma unroll
        for (int t = 0; t < per_thread; t++) { /* count by part; the counter returns the rank */
            if (t * block + thread >= size) part[t] = -1;
            rank[t] = ugrid_i_count_run(tile.first, part[t], part[t] >= 0);
        }
        __syncthreads();
        ugrid_i_block_scan(tile.first, count + 1, tile.warp_sums);
#pragma unroll 4
        for (int32_t q = thread; q < count; q += block) /* reserve room in each part */
            tile.shift[q] =
                atomicAdd(&parts.cursor[q], tile.first[q + 1] - tile.first[q]) - tile.first[q];
#pragma unroll
        for (int t = 0; t < per_thread; t++) {
            if (part[t] < 0) continue;
            int32_t const k = tile.first[part[t]] + rank[t];
            ugrid_i_make_item(grid, p[t], (int32_t)(begin + t * block + thread), &tile.item[k]);
            tile.part[k] = (uint16_t)part[t];
        }
        /* the loads overlap the stores below */
        if (begin + step < grid.n) ugrid_i_load_tile(grid, begin + step, p);
        __syncthreads();
        for (int32_t k = thread; k < size; k += block)
            parted[tile.shift[tile.part[k]] + k] = tile.item[k];
    }
}

/* The shared memory of a block of step 4. */
template <class Shape> struct ugrid_i_order_part {
    typename Shape::Item item[Shape::items];
    uint16_t from[Shape::items];                /* by place in the part: the index of its item */
    int32_t first[Shape::cells];                /* of each cell: count, then first place in the
                                                   part */
    int32_t warp_sums[Shape::block / 32 + 1];
};

/* Items that a thread of step 4 sorts. */
template <class Shape>
constexpr int ugrid_i_order_per_thread = (Shape::items + Shape::block - 1) / Shape::block;

/* Puts an item at place k. */
__device__ void ugrid_i_put_item(const ugrid &grid, int32_t k, const ugrid_record &item)
{
    grid.record[k] = item;
    grid.order[k] = item.link;
    if (grid.inverse) grid.inverse[item.link] = k;
}
__device__ void ugrid_i_put_item(const ugrid &grid, int32_t k, const ugrid_i_tag &item)
{
    grid.order[k] = item.id;
    if (grid.inverse) grid.inverse[item.id] = k;
}

/* Exclusive prefix sum of the counters of a part, which also gives the starts of its cells. */
template <class Shape>
__device__ void ugrid_i_start_cells(const ugrid &grid, ugrid_i_order_part<Shape> &own,
                                    const ugrid_i_part &part, int32_t cells)
{
    ugrid_i_block_scan(own.first, cells, own.warp_sums);
    for (int32_t c = (int32_t)threadIdx.x; c < cells; c += Shape::block)
        grid.start[part.cell + c] = part.place + own.first[c];
}

/* The items of a part that fits shared memory. Each thread loads those that it will sort. */
template <class Shape>
__device__ __forceinline__ void ugrid_i_load_part(const typename Shape::Item *item,
                                                  ugrid_i_order_part<Shape> &own, int32_t size)
{
#pragma unroll
    for (int t = 0; t < ugrid_i_order_per_thread<Shape>; t++) {
        int32_t const k = t * Shape::block + (int32_t)threadIdx.x;
        if (k < Shape::items) own.item[k] = item[k < size ? k : size - 1];
    }
}

/* Sorts the items that the threads have put into shared memory, and stores them. */
template <class Shape>
__device__ __forceinline__ void ugrid_i_sort_in_shared(const ugrid &grid,
                                                       ugrid_i_order_part<Shape> &own,
                                                       const ugrid_i_part &part, int32_t size,
                                                       int32_t cells)
{
    constexpr int per_thread = ugrid_i_order_per_thread<Shape>;
    int32_t const thread = (int32_t)threadIdx.x;
    int32_t cell[per_thread], rank[per_thread];
#pragma unroll
    for (int t = 0; t < per_thread; t++) {
        int32_t const k = t * Shape::block + thread;
        cell[t] = k < size ? ugrid_i_item_number(grid, own.item[k]) - part.cell : -1;
        rank[t] = ugrid_i_count_run(own.first, cell[t], cell[t] >= 0);
    }
    __syncthreads();
    ugrid_i_start_cells(grid, own, part, cells);
#pragma unroll
    for (int t = 0; t < per_thread; t++)
        if (cell[t] >= 0)
            own.from[own.first[cell[t]] + rank[t]] = (uint16_t)(t * Shape::block + thread);
    __syncthreads();
    for (int32_t k = thread; k < size; k += Shape::block)
        ugrid_i_put_item(grid, part.place + k, own.item[own.from[k]]);
}

/* Sorts a part with too many particles in its last bin: two passes through global memory. */
template <class Shape>
__device__ void ugrid_i_sort_in_global(const ugrid &grid, const typename Shape::Item *item,
                                       ugrid_i_order_part<Shape> &own, const ugrid_i_part &part,
                                       int32_t size, int32_t cells)
{
    for (int32_t first = 0; first < size; first += Shape::block) { /* whole warps */
        int32_t const k = first + (int32_t)threadIdx.x,
                      cell = k < size ? ugrid_i_item_number(grid, item[k]) - part.cell : -1;
        ugrid_i_count_run(own.first, cell, cell >= 0);
    }
    __syncthreads();
    ugrid_i_start_cells(grid, own, part, cells);
    __syncthreads();
    /* the start of a cell is the cursor of its next particle */
    for (int32_t first = 0; first < size; first += Shape::block) {
        int32_t const k = first + (int32_t)threadIdx.x,
                      cell = k < size ? ugrid_i_item_number(grid, item[k]) - part.cell : -1;
        int32_t const at = ugrid_i_count_run(own.first, cell, cell >= 0);
        if (cell >= 0) ugrid_i_put_item(grid, part.place + at, item[k]);
    }
}

/* 4. A block sorts each part by cell. */
template <class Shape>
__global__ void __launch_bounds__(Shape::block, Shape::one_block_per_sm ? 1 : 2)
    ugrid_i_order_kernel(__grid_constant__ const ugrid_device device, ugrid_i_parts parts,
                         const typename Shape::Item *parted, int32_t *near_samples)
{
    ugrid_i_order_part<Shape> &own =
        *reinterpret_cast<ugrid_i_order_part<Shape> *>(ugrid_i_shared());
    if ((int32_t)blockIdx.x >= *parts.made) return;
    if (near_samples && ugrid_i_thread() < 32) ugrid_i_sample_order(device.grid, near_samples);
    ugrid_i_part const part = parts.part[blockIdx.x], next = parts.part[blockIdx.x + 1];
    int32_t const size = next.place - part.place, cells = next.cell - part.cell;
    for (int32_t c = (int32_t)threadIdx.x; c < cells; c += Shape::block) own.first[c] = 0;
    __syncthreads();
    if (size == 0) ugrid_i_start_cells(device.grid, own, part, cells);
    else if (size <= Shape::items) {
        ugrid_i_load_part(parted + part.place, own, size);
        ugrid_i_sort_in_shared(device.grid, own, part, size, cells);
    } else ugrid_i_sort_in_global(device.grid, parted + part.place, own, part, size, cells);
}

/* The smallest power of two that is at least x, within `least` and `most`. */
int32_t ugrid_i_bins_for(int64_t x, int32_t least, int32_t most)
{
    int32_t bins = least;
    while (bins < x && bins < most) bins *= 2;
    return bins;
}

/* The plan for n particles with parts of this shape, `shared` bytes of shared memory in a block.
   bins = 0: there is none. */
template <class Shape>
ugrid_i_parts ugrid_i_plan_shape(const ugrid *grid, int32_t n, size_t shared)
{
    using Item = typename Shape::Item;
    ugrid_i_parts parts = {}, none = {};
    int64_t const cells = (int64_t)grid->cell_count + 1;
    if (shared < std::max(sizeof(ugrid_i_tile<Item, ugrid_i_small_tile<Item>>),
                          sizeof(ugrid_i_order_part<Shape>)))
        return none;
    /* 4 bins per part */
    int64_t const bins =
        std::max((int64_t)n * 4 / Shape::items, cells / (Shape::bin_cells - 1) + 1);
    parts.bins = ugrid_i_bins_for(bins, 64, ugrid_i_bins_max);
    if (cells <= parts.bins || cells / parts.bins >= Shape::bin_cells) return none;
    /* a part ends with the bin that exceeds its target: reserve room for one of 1.25 times the
       mean */
    parts.target = std::max(Shape::items - 1.25 * n / parts.bins, 0.5 * Shape::items);
    parts.cells_target = Shape::cells - (double)cells / parts.bins - 64;
    int const large_tiles = n / ugrid_i_large_tile<Item>,
              processors = ugrid_i_device_attribute(cudaDevAttrMultiProcessorCount);
    parts.large_tiles = large_tiles >= ugrid_i_large_tiles_least * processors &&
                        shared >= sizeof(ugrid_i_tile<Item, ugrid_i_large_tile<Item>>);
    double const room = n / parts.target + (double)cells / parts.cells_target + 2;
    if (room > ugrid_i_parts_max) return none;
    parts.room = (int32_t)room;
    parts.scale = (uint32_t)(((uint64_t)parts.bins << 32) / (uint64_t)cells);
    parts.bin_width = 4294967296.0 / parts.scale;
    parts.one_block_per_sm = Shape::one_block_per_sm;
    return parts;
}

/* The plan for n particles. bins = 0: one round, no parts. */
template <class Item> ugrid_i_parts ugrid_i_plan_parts(const ugrid_cuda *gpu, int32_t n)
{
    const ugrid *grid = &gpu->device.grid;
    ugrid_i_parts const one_round = {};
    size_t const shared = (size_t)ugrid_i_device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    if (gpu->in_order || n < ugrid_i_parts_least) return one_round;
    if (!ugrid_i_exceed_cache(n, sizeof(Item))) return one_round; /* which is as fast there */
    ugrid_i_parts const parts = ugrid_i_plan_shape<ugrid_i_shape<Item, false>>(grid, n, shared);
    return parts.bins > 0 ? parts : ugrid_i_plan_shape<ugrid_i_shape<Item, true>>(grid, n, shared);
}

constexpr int32_t ugrid_i_cooperative_cells = 48 * 1024; /* >>cooperative */

/* Bytes of the arrays of ugrid_i_parts in scratch memory, for the largest plan. */
constexpr size_t ugrid_i_parts_bytes = (ugrid_i_parts_max + 1) * sizeof(ugrid_i_part) +
                                       (ugrid_i_parts_max + 1) * sizeof(int32_t) +
                                       ugrid_i_bins_max * sizeof(uint16_t);

void ugrid_i_count_sizes(const ugrid *grid, int32_t n, size_t bytes[UGRID_BLOCKS],
                         size_t scratch[UGRID_CUDA_SCRATCH])
{
    bool const parts = n >= ugrid_i_parts_least && !ugrid_i_tight(grid);
    scratch[UGRID_I_KEYS_A] = (size_t)n * (size_t)grid->spans * 2 * sizeof(int32_t);
    if (grid->cell_count <= ugrid_i_cooperative_cells) /* counters of >>cooperative */
        scratch[UGRID_I_KEYS_A] = std::max(scratch[UGRID_I_KEYS_A],
                                           ((size_t)grid->cell_count + 4) * sizeof(int32_t));
    if (!parts) return;
    if (!grid->desc.no_records) scratch[UGRID_I_KEYS_A] = (size_t)n * sizeof(ugrid_record);
    scratch[UGRID_I_PARTS] = ugrid_i_parts_bytes;
    bytes[UGRID_I_START] += ugrid_i_bins_max * sizeof(int32_t);
}

/* Points the arrays of a plan into scratch memory; the counters follow the facts. */
void ugrid_i_bind_parts(ugrid_cuda *gpu, ugrid_i_parts *parts)
{
    parts->count = reinterpret_cast<int32_t *>(gpu->d_facts + 1);
    parts->part = ugrid_i_scratch<ugrid_i_part>(gpu, UGRID_I_PARTS);
    parts->made = reinterpret_cast<int32_t *>(parts->part + ugrid_i_parts_max + 1);
    parts->cursor = parts->made + 1;
    parts->part_of = reinterpret_cast<uint16_t *>(parts->cursor + ugrid_i_parts_max);
}

/* The threads of as many blocks as are resident, `per` on each multiprocessor, but no more than n
   particles need at `items` per block. */
int64_t ugrid_i_resident_threads(int64_t n, int items, int block, int per)
{
    int64_t const processors =
        std::max(ugrid_i_device_attribute(cudaDevAttrMultiProcessorCount), 1);
    return std::min((n + items - 1) / items, processors * per) * block;
}

template <class Item, int Tile>
ugrid_result ugrid_i_partition(ugrid_cuda *gpu, const ugrid_i_parts &parts, Item *parted,
                               cudaStream_t stream)
{
    /* two blocks per multiprocessor if its shared memory has room for both: an H200 has 227 KB */
    int const block = Tile / ugrid_i_tile_per_thread,
              per = sizeof(ugrid_i_tile<Item, Tile>) > 110 * 1024 ? 1 : 2;
    return ugrid_i_launch_shared(gpu, stream,
                                 ugrid_i_resident_threads(gpu->device.grid.n, Tile, block, per),
                                 block, sizeof(ugrid_i_tile<Item, Tile>),
                                 ugrid_i_partition_kernel<Item, Tile>, gpu->device, parts, parted);
}

template <class Shape>
ugrid_result ugrid_i_order_parts(ugrid_cuda *gpu, const ugrid_i_parts &parts,
                                 const typename Shape::Item *parted, cudaStream_t stream)
{
    return ugrid_i_launch_shared(gpu, stream, (int64_t)parts.room * ugrid_i_order_block,
                                 ugrid_i_order_block, sizeof(ugrid_i_order_part<Shape>),
                                 ugrid_i_order_kernel<Shape>, gpu->device, parts, parted,
                                 ugrid_i_samples_to(gpu));
}

template <class Item>
ugrid_result ugrid_i_build_parts(ugrid_cuda *gpu, ugrid_i_parts parts, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    Item *const parted = ugrid_i_scratch<Item>(gpu, UGRID_I_KEYS_A);
    int const batches = 2 * ugrid_i_batch;
    size_t const counters = (size_t)parts.bins * sizeof(int32_t);
    ugrid_i_bind_parts(gpu, &parts);
    if (ugrid_i_failed(gpu,
                       cudaMemsetAsync(gpu->d_facts, 0, sizeof *gpu->d_facts + counters, stream)))
        return UGRID_CUDA_ERROR;
    ugrid_result result = ugrid_i_launch_shared(
        gpu, stream,
        ugrid_i_resident_threads(grid->n, batches * ugrid_i_bins_block, ugrid_i_bins_block, 4),
        ugrid_i_bins_block, counters, ugrid_i_bins_kernel, gpu->device, parts, gpu->d_facts);
    if (result == UGRID_OK)
        result = ugrid_i_launch(gpu, stream, ugrid_i_parts_block, ugrid_i_parts_block,
                                ugrid_i_parts_kernel, parts, grid->n, grid->cell_count);
    if (result != UGRID_OK) return result;
    result = parts.large_tiles
                 ? ugrid_i_partition<Item, ugrid_i_large_tile<Item>>(gpu, parts, parted, stream)
                 : ugrid_i_partition<Item, ugrid_i_small_tile<Item>>(gpu, parts, parted, stream);
    if (result != UGRID_OK) return result;
    if (parts.one_block_per_sm)
        return ugrid_i_order_parts<ugrid_i_shape<Item, true>>(gpu, parts, parted, stream);
    return ugrid_i_order_parts<ugrid_i_shape<Item, false>>(gpu, parts, parted, stream);
}

/* ----------------------------------------------------------------------------------------------
   >>cooperative: COUNT of some thousand particles in one launch, whose blocks wait for each other.
   (This is in none of the sources.)

   Launches one after another cost more here than what they do. All blocks of this one run at the
   same time, so each can wait for all. A thread keeps its particles in registers all the while:

   1. Empty the counters, and load the particles. Barrier.
   2. Count them by cell; the counter returns the rank. Barrier.
   3. Every block makes the same prefix sums of all counters, in its shared memory: to share that
      work would take another barrier.
   4. Store each particle at the start of its cell + its rank.
   ---------------------------------------------------------------------------------------------- */

constexpr int ugrid_i_cooperative_block = 1024, ugrid_i_cooperative_per_thread = 2,
              ugrid_i_cooperative_quads = 4;

/* The shared memory of a block. */
struct ugrid_i_prefix_sums {
    /* and one more */
    int32_t warp_sums[ugrid_i_cooperative_quads * (ugrid_i_cooperative_block / 32 + 1)];
    int32_t first[ugrid_i_cooperative_cells]; /* by cell; only as many as there are counters */
};

/* One for each cell and one for particles in no cell, rounded up to whole quads. */
__host__ __device__ int32_t ugrid_i_cooperative_counters(const ugrid *grid)
{
    return (grid->cell_count + 4) / 4 * 4;
}

/* All threads of the launch wait here for each other. What they stored before, all can load after.
   CUDA_EMU: the launch has one block. */
__device__ __forceinline__ void ugrid_i_grid_barrier()
{
#ifdef CUDA_EMU
    __syncthreads();
#else
    cooperative_groups::this_grid().sync();
#endif
}

/* One warp: exclusive prefix sums of sums[0 .. m-1]; sums[m] becomes the total. */
__device__ void ugrid_i_scan_warp_sums(int32_t *sums, int32_t m)
{
    int32_t const lane = (int32_t)(threadIdx.x % 32), run = (m + 31) / 32, from = lane * run;
    int32_t sum = 0;
    for (int32_t k = from; k < from + run && k < m; k++) sum += sums[k];
    int32_t before = ugrid_i_warp_prefix(sum);
    for (int32_t k = from; k < from + run && k < m; k++) {
        int32_t const own = sums[k];
        sums[k] = before;
        before += own;
    }
    if (lane == 31) sums[m] = before;
}

/* Exclusive prefix sums of count[0 .. m-1] in shared memory, m a multiple of 4. A thread has 4
   counters side by side, in `quads` places. */
__device__ __forceinline__ void ugrid_i_sum_counters(const int32_t *count, int32_t m,
                                                     ugrid_i_prefix_sums &own)
{
    constexpr int quads = ugrid_i_cooperative_quads;
    int32_t const lane = (int32_t)(threadIdx.x % 32), warp = (int32_t)(threadIdx.x / 32),
                  block = (int32_t)blockDim.x, warps = block / 32;
    int32_t carry = 0;
    for (int32_t begin = 0; begin < m; begin += 4 * quads * block) {
        int4 x[quads];
        int32_t before[quads];
#pragma unroll
        for (int q = 0; q < quads; q++) {
            int32_t const c = begin + 4 * (q * block + (int32_t)threadIdx.x);
            x[q] = c < m ? *reinterpret_cast<const int4 *>(&count[c]) : make_int4(0, 0, 0, 0);
        }
#pragma unroll
        for (int q = 0; q < quads; q++) {
            int32_t const sum = x[q].x + x[q].y + x[q].z + x[q].w;
            before[q] = ugrid_i_warp_prefix(sum);
            if (lane == 31) own.warp_sums[q * warps + warp] = before[q] + sum;
        }
        __syncthreads();
        if (warp == 0) ugrid_i_scan_warp_sums(own.warp_sums, quads * warps);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < quads; q++) {
            int32_t const c = begin + 4 * (q * block + (int32_t)threadIdx.x);
            int32_t const first = carry + own.warp_sums[q * warps + warp] + before[q];
            if (c >= m) continue;
            *reinterpret_cast<int4 *>(&own.first[c]) =
                make_int4(first, first + x[q].x, first + x[q].x + x[q].y,
                          first + x[q].x + x[q].y + x[q].z);
        }
        carry += own.warp_sums[quads * warps];
        __syncthreads();
    }
}

__device__ __forceinline__ void ugrid_i_put_particle(const ugrid &grid, const ugrid_real p[3],
                                                     int32_t id, int32_t k)
{
    grid.order[k] = id;
    if (grid.record) grid.record[k] = ugrid_i_record_at(&grid, p, id);
    if (grid.inverse) grid.inverse[id] = k;
}

__global__ void __launch_bounds__(ugrid_i_cooperative_block)
    ugrid_i_cooperative_kernel(__grid_constant__ const ugrid_device device, int32_t *count,
                            ugrid_cuda_facts *facts)
{
    constexpr int per_thread = ugrid_i_cooperative_per_thread;
    const ugrid &grid = device.grid;
    ugrid_i_prefix_sums &own = *reinterpret_cast<ugrid_i_prefix_sums *>(ugrid_i_shared());
    int32_t const thread = ugrid_i_thread(), threads = (int32_t)(gridDim.x * blockDim.x),
                  counters = ugrid_i_cooperative_counters(&grid);
    ugrid_real p[per_thread][3];
    int32_t number[per_thread], rank[per_thread];

    for (int32_t c = thread; c < counters; c += threads) count[c] = 0;
    if (thread == 0) *facts = {};
#pragma unroll
    for (int t = 0; t < per_thread; t++) {
        int32_t const i = t * threads + thread;
        if (i < grid.n) ugrid_i_load(grid.pos, grid.stride, grid.desc.dim, i, p[t]);
    }
    ugrid_i_grid_barrier();

#pragma unroll
    for (int t = 0; t < per_thread; t++) {
        int32_t const i = t * threads + thread;
        number[t] = -1;
        if (t * threads >= grid.n) continue; /* the same for all */
        if (i < grid.n)
            number[t] = ugrid_i_has_no_cell(grid, p[t], i, facts) ? grid.cell_count
                                                                  : ugrid_cell_at(&grid, p[t]);
        rank[t] = ugrid_i_count_run(count, number[t], number[t] >= 0);
    }
    ugrid_i_grid_barrier();

    ugrid_i_sum_counters(count, counters, own);
    for (int32_t c = thread; c <= grid.cell_count; c += threads) grid.start[c] = own.first[c];
#pragma unroll
    for (int t = 0; t < per_thread; t++)
        if (number[t] >= 0)
            ugrid_i_put_particle(grid, p[t], t * threads + thread, own.first[number[t]] + rank[t]);
}

/* As many blocks as surely run at the same time, one on each multiprocessor. */
int32_t ugrid_i_cooperative_blocks()
{
#ifdef CUDA_EMU
    return 1;
#else
    return ugrid_i_device_attribute(cudaDevAttrCooperativeLaunch)
               ? ugrid_i_device_attribute(cudaDevAttrMultiProcessorCount)
               : 0;
#endif
}

/* Threads of a block: one particle each, evenly over the blocks, if that is possible. */
int32_t ugrid_i_cooperative_threads(int32_t n, int32_t blocks)
{
    int32_t const share = ((n + blocks - 1) / blocks + 31) / 32 * 32;
    return std::min(std::max(share, 256), ugrid_i_cooperative_block);
}

/* The shared memory of a block, without the counters that there are not. */
size_t ugrid_i_cooperative_shared(const ugrid *grid)
{
    return sizeof(ugrid_i_prefix_sums) -
           sizeof(int32_t) *
               (size_t)(ugrid_i_cooperative_cells - ugrid_i_cooperative_counters(grid));
}

bool ugrid_i_fits_cooperative(const ugrid *grid)
{
    int32_t const most =
        ugrid_i_cooperative_blocks() * ugrid_i_cooperative_block * ugrid_i_cooperative_per_thread;
    return grid->n <= most && grid->cell_count <= ugrid_i_cooperative_cells - 4 &&
           ugrid_i_cooperative_shared(grid) <=
               (size_t)ugrid_i_device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

/* false: where fewer multiprocessors are at hand than the device has, the blocks may not all run at
   the same time, and nothing was launched. */
bool ugrid_i_build_cooperative(ugrid_cuda *gpu, cudaStream_t stream, ugrid_result *result)
{
    const ugrid *grid = &gpu->device.grid;
    int32_t const blocks = ugrid_i_cooperative_blocks(),
                  block = ugrid_i_cooperative_threads(grid->n, blocks),
                  needed = std::max((grid->n + block - 1) / block, 1);
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)std::min(blocks, needed));
    config.blockDim = dim3((unsigned)block);
    config.dynamicSmemBytes = ugrid_i_cooperative_shared(grid);
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    *result = ugrid_i_launch_config(gpu, config, ugrid_i_cooperative_kernel, gpu->device,
                                    ugrid_i_scratch<int32_t>(gpu, UGRID_I_KEYS_A), gpu->d_facts);
    return *result == UGRID_OK ||
           grid->cuda_error != (int32_t)cudaErrorCooperativeLaunchTooLarge;
}

/* COUNT of whole items by parts; false: in no such way. */
template <class Item>
bool ugrid_i_builds_parts(ugrid_cuda *gpu, cudaStream_t stream, ugrid_result *result)
{
    ugrid_i_parts const parts = ugrid_i_plan_parts<Item>(gpu, gpu->device.grid.n);
    if (parts.bins > 0) *result = ugrid_i_build_parts<Item>(gpu, parts, stream);
    return parts.bins > 0;
}

/* COUNT: a launch for few particles, two rounds for many, and one round for those between, those in
   order, and tight ones. */
ugrid_result ugrid_i_cuda_build_count(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    ugrid_result result = UGRID_OK;
    bool const done =
        !ugrid_i_tight(grid) &&
        ((ugrid_i_fits_cooperative(grid) && ugrid_i_build_cooperative(gpu, stream, &result)) ||
         (grid->record ? ugrid_i_builds_parts<ugrid_record>(gpu, stream, &result)
                       : ugrid_i_builds_parts<ugrid_i_tag>(gpu, stream, &result)));
    return done ? result : ugrid_i_cuda_build_count_one_round(gpu, stream);
}

/* ----------------------------------------------------------------------------------------------
   >>build-sorted: SORT and the deterministic builds; FIXED and LIST by atomics
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_key_kernel(__grid_constant__ const ugrid_device device, uint32_t *keys,
                       int32_t *entries, ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t const e = ugrid_i_thread();
    if (e >= grid.n * grid.spans) return;
    int32_t const number = ugrid_i_number_of(grid, e, facts);
    keys[e] = (uint32_t)(number < 0 ? grid.cell_count : number);
    entries[e] = e;
}

/* start[after + 1] .. start[upto] = k for each thread of a warp. If cells are dense, each thread
   has one cell or none. A long gap of empty cells is filled by the whole warp. */
__device__ void ugrid_i_fill_gap(int32_t *start, int32_t after, int32_t upto, int32_t k)
{
    constexpr int32_t alone = 8;
    int const lane = (int)(threadIdx.x % 32);
    unsigned longs = __ballot_sync(0xFFFFFFFFu, upto - after > alone);
    if (upto - after <= alone)
        for (int32_t c = after + 1; c <= upto; c++) start[c] = k;
    for (; longs; longs &= longs - 1) {
        int const owner = __ffs((int)longs) - 1;
        int32_t const from = __shfl_sync(0xFFFFFFFFu, after, owner),
                      to = __shfl_sync(0xFFFFFFFFu, upto, owner),
                      at = __shfl_sync(0xFFFFFFFFu, k, owner);
        for (int32_t c = from + 1 + lane; c <= to; c += 32) start[c] = at;
    }
}

/* A cell starts where the sorted keys change (Barbieri section 1, Kureck section 2.3.1), and so do
   the empty cells before it. Thread m closes the last cells. Sparse: of a gap of more than two
   chunks of cells only the ends are filled, up to the borders of chunks:

       chunks   |    after ------->|               |               |-----> upto    |
                             border                          resume + 1                       */
constexpr int32_t ugrid_i_chunk = 4096;

__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_start_kernel(const uint32_t *keys, int32_t m, int32_t cell_count, bool sparse,
                         int32_t *start)
{
    int32_t const k = ugrid_i_thread();
    int32_t after = 0, upto = 0, resume = 0;
    if (k <= m) {
        after = k > 0 ? (int32_t)keys[k - 1] : -1;
        resume = upto = k < m ? (int32_t)keys[k] : cell_count;
    }
    if (sparse) {
        int32_t const border = after + 1 - (after + 1) % ugrid_i_chunk + ugrid_i_chunk - 1;
        bool const far_apart = upto - after > 2 * ugrid_i_chunk;
        if (far_apart) resume = upto - upto % ugrid_i_chunk - 1;
        ugrid_i_fill_gap(start, resume, upto, k);
        if (far_apart) upto = border;
    }
    ugrid_i_fill_gap(start, after, upto, k);
}

/* Sparse: a block per chunk of cells. If there is no key in it, all of it has one start. (To fill
   the last gap by a single warp took most of a step of examples/drum with ten million spheres.) */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_empty_chunk_kernel(const uint32_t *keys, int32_t m, int32_t cell_count, int32_t *start)
{
    int32_t const first = (int32_t)blockIdx.x * ugrid_i_chunk;
    int32_t const last =
        cell_count - first < ugrid_i_chunk ? cell_count : first + ugrid_i_chunk - 1;
    int32_t low = 0, high = m; /* the first key that is not below `first` */
    while (low < high) {
        int32_t const middle = low + (high - low) / 2;
        if (keys[middle] < (uint32_t)first) low = middle + 1;
        else high = middle;
    }
    if (low < m && keys[low] <= (uint32_t)last) return;
    for (int32_t c = first + (int32_t)threadIdx.x; c <= last; c += ugrid_i_block) start[c] = low;
}

/* FIXED from sorted entries: the slot is the distance from the start of the cell. */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_slots_kernel(__grid_constant__ const ugrid_device device, const uint32_t *keys,
                         const int32_t *entries, const int32_t *start, ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t const k = ugrid_i_thread();
    if (k >= grid.n * grid.spans) return;
    int32_t const number = (int32_t)keys[k];
    if (number >= grid.cell_count) return;
    int32_t const s = k - start[number], count = start[number + 1] - start[number];
    if (s < grid.desc.slots) grid.slot[ugrid_i_slot(&grid, number, s)] = entries[k];
    if (s != 0) return;
    grid.count[number] = count;
    if (count > grid.desc.slots) atomicMax(&facts->needed_slots, count);
}

/* LIST and LIST_PACKED from sorted entries: each links to the one before it, and the last of a cell
   is the head. */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_links_kernel(__grid_constant__ const ugrid_device device, const uint32_t *keys,
                         const int32_t *entries)
{
    const ugrid &grid = device.grid;
    int32_t const k = ugrid_i_thread(), m = grid.n * grid.spans;
    if (k >= m) return;
    int32_t const number = (int32_t)keys[k], entry = entries[k];
    bool const used = number < grid.cell_count;
    int32_t const link = used && k > 0 && (int32_t)keys[k - 1] == number ? entries[k - 1] : -1;
    if (grid.next) grid.next[entry] = link;
    else grid.record[entry] = ugrid_i_record(&grid, entry, link);
    if (used && (k == m - 1 || (int32_t)keys[k + 1] != number)) grid.head[number] = entry;
}

/* Finds the start of each cell in m sorted keys. */
ugrid_result ugrid_i_find_starts(ugrid_cuda *gpu, const uint32_t *keys, int32_t m, int32_t *start,
                                 cudaStream_t stream)
{
    int32_t const cells = gpu->device.grid.cell_count;
    bool const sparse = cells > 2 * ugrid_i_chunk && cells / 4 > m;
    ugrid_result const result = ugrid_i_launch(gpu, stream, (int64_t)m + 1, ugrid_i_block,
                                               ugrid_i_start_kernel, keys, m, cells, sparse, start);
    if (result != UGRID_OK || !sparse) return result;
    return ugrid_i_launch(gpu, stream, ((int64_t)cells / ugrid_i_chunk + 1) * ugrid_i_block,
                          ugrid_i_block, ugrid_i_empty_chunk_kernel, keys, m, cells, start);
}

/* Builds the arrays of the method from sorted (number, entry) pairs. */
ugrid_result ugrid_i_cuda_arrange(ugrid_cuda *gpu, const uint32_t *keys, int32_t *entries,
                                  cudaStream_t stream)
{
    ugrid *grid = &gpu->device.grid;
    int32_t const m = grid->n * grid->spans;
    bool const slots = grid->desc.method == UGRID_FIXED, lists = grid->head != nullptr;
    int32_t *const start = slots ? ugrid_i_scratch<int32_t>(gpu, UGRID_I_STARTS) : grid->start;
    if (lists)
        return ugrid_i_launch(gpu, stream, m, ugrid_i_block, ugrid_i_links_kernel, gpu->device,
                              keys, entries);
    ugrid_result const result = ugrid_i_find_starts(gpu, keys, m, start, stream);
    if (result != UGRID_OK) return result;
    if (slots)
        return ugrid_i_launch(gpu, stream, m, ugrid_i_block, ugrid_i_slots_kernel, gpu->device,
                              keys, entries, start, gpu->d_facts);
    grid->order = entries;
    return ugrid_i_cuda_reorder(gpu, stream);
}

/* Sets the array by cell to `byte`s and the facts to 0. */
ugrid_result ugrid_i_clear(ugrid_cuda *gpu, int byte, cudaStream_t stream)
{
    if (ugrid_i_failed(gpu, cudaMemsetAsync(gpu->block[UGRID_I_START].memory, byte,
                                            ugrid_i_facts_at(&gpu->device.grid), stream)))
        return UGRID_CUDA_ERROR;
    return ugrid_i_failed(gpu, cudaMemsetAsync(gpu->d_facts, 0, sizeof *gpu->d_facts, stream))
               ? UGRID_CUDA_ERROR
               : UGRID_OK;
}

/* SORT, and every deterministic build: a stable sort of (number, entry) by as many bits as the
   numbers have. */
ugrid_result ugrid_i_cuda_build_sort(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    int64_t const m = (int64_t)grid->n * grid->spans;
    size_t temp = gpu->scratch[UGRID_I_TEMP].bytes;
    cub::DoubleBuffer<uint32_t> keys(ugrid_i_scratch<uint32_t>(gpu, UGRID_I_KEYS_A),
                                     ugrid_i_scratch<uint32_t>(gpu, UGRID_I_KEYS_B));
    cub::DoubleBuffer<int32_t> entries(static_cast<int32_t *>(gpu->block[UGRID_I_ORDER].memory),
                                       ugrid_i_scratch<int32_t>(gpu, UGRID_I_ENTRIES_B));
    ugrid_result result = ugrid_i_clear(gpu, grid->head ? 0xFF : 0, stream);
    if (result == UGRID_OK)
        result = ugrid_i_launch(gpu, stream, m, ugrid_i_block, ugrid_i_key_kernel, gpu->device,
                                keys.Current(), entries.Current(), gpu->d_facts);
    if (result != UGRID_OK) return result;
    if (m > 0 &&
        ugrid_i_failed(gpu, ugrid_i_sort_pairs(gpu->scratch[UGRID_I_TEMP].memory, temp, keys,
                                               entries, m, ugrid_i_key_bits(grid), stream)))
        return UGRID_CUDA_ERROR;
    return ugrid_i_cuda_arrange(gpu, keys.Current(), entries.Current(), stream);
}

/* FIXED (Barbieri section 1): the counter gives the slot, and also counts entries that do not
   fit. */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_fixed_kernel(__grid_constant__ const ugrid_device device, ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t const e = ugrid_i_thread(), entries = grid.n * grid.spans;
    int32_t number = e < entries ? ugrid_i_number_of(grid, e, facts) : -1;
    if (number == grid.cell_count) number = -1;
    int32_t const s = ugrid_i_count_run(grid.count, number, number >= 0);
    if (number < 0) return;
    if (s < grid.desc.slots) grid.slot[ugrid_i_slot(&grid, number, s)] = e;
    else atomicMax(&facts->needed_slots, s + 1);
}

/* LIST and LIST_PACKED (Barbieri section 2): one atomicExch makes the entry the head and returns
   the old head, its link. */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_list_kernel(__grid_constant__ const ugrid_device device, ugrid_cuda_facts *facts)
{
    const ugrid &grid = device.grid;
    int32_t const e = ugrid_i_thread();
    if (e >= grid.n * grid.spans) return;
    int32_t const number = ugrid_i_number_of(grid, e, facts);
    int32_t const link =
        number >= 0 && number < grid.cell_count ? atomicExch(&grid.head[number], e) : -1;
    if (grid.next) grid.next[e] = link;
    else grid.record[e] = ugrid_i_record(&grid, e, link);
}

ugrid_result ugrid_i_cuda_build_entries(ugrid_cuda *gpu, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    int64_t const entries = (int64_t)grid->n * grid->spans;
    ugrid_result const result = ugrid_i_clear(gpu, grid->head ? 0xFF : 0, stream);
    if (result != UGRID_OK) return result;
    if (grid->head)
        return ugrid_i_launch(gpu, stream, entries, ugrid_i_block, ugrid_i_list_kernel, gpu->device,
                              gpu->d_facts);
    return ugrid_i_launch(gpu, stream, entries, ugrid_i_block, ugrid_i_fixed_kernel, gpu->device,
                          gpu->d_facts);
}

ugrid_result ugrid_i_cuda_build_method(ugrid_cuda *gpu, cudaStream_t stream)
{
    if (ugrid_i_sorts(&gpu->device.grid.desc)) return ugrid_i_cuda_build_sort(gpu, stream);
    if (gpu->device.grid.desc.method == UGRID_COUNT) return ugrid_i_cuda_build_count(gpu, stream);
    return ugrid_i_cuda_build_entries(gpu, stream);
}

/* Waits, and copies the facts to the host. */
ugrid_result ugrid_i_fetch_facts(ugrid_cuda *gpu, ugrid_cuda_facts *facts, cudaStream_t stream)
{
    memset(facts, 0, sizeof *facts);
    if (gpu->device.grid.n > 0 &&
        ugrid_i_failed(gpu, cudaMemcpyAsync(facts, gpu->d_facts, sizeof *facts,
                                            cudaMemcpyDeviceToHost, stream)))
        return UGRID_CUDA_ERROR; /* (without particles there are no facts) */
    return ugrid_i_failed(gpu, cudaStreamSynchronize(stream)) ? UGRID_CUDA_ERROR : UGRID_OK;
}

/* FIXED with desc.grow: as ugrid_i_build_again, where a cell is full. */
ugrid_result ugrid_i_cuda_build_again(ugrid_cuda *gpu, cudaStream_t stream)
{
    ugrid *grid = &gpu->device.grid;
    int32_t const had = grid->desc.slots;
    ugrid_cuda_facts facts;
    ugrid_result result = ugrid_i_fetch_facts(gpu, &facts, stream);
    grid->needed_slots = facts.needed_slots;
    if (result != UGRID_OK || facts.needed_slots <= had) return result;
    ugrid_i_double_slots(grid);
    result = ugrid_i_cuda_prepare(gpu, grid->n, 0, stream);
    if (result == UGRID_OK) result = ugrid_i_cuda_build_method(gpu, stream);
    if (result != UGRID_OK) grid->desc.slots = had;
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>attributes: gather, scatter, sums per cell
   ---------------------------------------------------------------------------------------------- */

/* dst[k] = src[id] (gather) or dst[id] = src[k] (scatter), one word of an element per thread. */
template <class Word>
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_move_kernel(__grid_constant__ const ugrid_device device, const Word *src, int32_t words,
                        Word *dst, bool gather)
{
    int64_t const t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= (int64_t)device.grid.n * words) return;
    int32_t const k = (int32_t)(t / words);
    int64_t const there = (int64_t)ugrid_id(&device.grid, k) * words + t % words;
    if (gather) dst[t] = src[there];
    else dst[there] = src[t];
}

template <class Word>
ugrid_result ugrid_i_move_words(ugrid_cuda *gpu, const void *src, size_t bytes, void *dst,
                                bool gather, cudaStream_t stream)
{
    int32_t const words = (int32_t)(bytes / sizeof(Word));
    return ugrid_i_launch(gpu, stream, (int64_t)gpu->device.grid.n * words, ugrid_i_block,
                          ugrid_i_move_kernel<Word>, gpu->device, static_cast<const Word *>(src),
                          words, static_cast<Word *>(dst), gather);
}

/* Moves the widest words that the element and both addresses allow. */
ugrid_result ugrid_i_move(ugrid_cuda *gpu, const void *src, size_t bytes, void *dst, bool gather,
                          cudaStream_t stream)
{
    if (!gpu || bytes == 0 || bytes > INT_MAX || (gpu->device.grid.n > 0 && (!src || !dst)))
        return UGRID_BAD_ARGUMENT;
    if (!gpu->device.grid.built) return UGRID_NOT_BUILT;
    size_t const all = bytes | reinterpret_cast<size_t>(src) | reinterpret_cast<size_t>(dst);
    if (all % 16 == 0) return ugrid_i_move_words<uint4>(gpu, src, bytes, dst, gather, stream);
    if (all % 4 == 0) return ugrid_i_move_words<uint32_t>(gpu, src, bytes, dst, gather, stream);
    return ugrid_i_move_words<uint8_t>(gpu, src, bytes, dst, gather, stream);
}

/* Reduces x over the lanes of `peers`; the lowest of them gets the sum (Blog, Voting and
   Shuffling). In each round a lane of even rank among the remaining ones adds the x of its next
   peer, and the odd ones drop out. The number of rounds is the logarithm of the largest group.

       ranks   0 1 2 3 4     round 1: 0+1, 2+3, 4     round 2: (0+1)+(2+3), 4     round 3: all */
__device__ ugrid_real ugrid_i_sum_peers(unsigned peers, ugrid_real x)
{
    unsigned const all = 0xFFFFFFFFu, lane = threadIdx.x % 32;
    unsigned const lower = (1u << lane) - 1;
    unsigned left = peers;
    while (__any_sync(all, (left & (left - 1)) != 0)) { /* some group has more than one lane left */
        unsigned const above = lane == 31 ? 0 : left & (0xFFFFFFFEu << lane);
        ugrid_real const next = __shfl_sync(all, x, above ? __ffs((int)above) - 1 : (int)lane);
        bool const even = __popc(left & lower) % 2 == 0, stays = (left >> lane & 1) && even;
        if (stays && above) x += next;
        left &= __ballot_sync(all, stays);
    }
    return x;
}

/* Fewer cells than a warp has lanes: then some lanes have the same one, in any order. */
constexpr int32_t ugrid_i_few_cells = 32;

/* Do lanes with the same cell add up first? Only where many have it: in the order of the cells. In
   any other order the search for equal cells costs more than the atomics that it saves (Blog). */
bool ugrid_i_sums_by_warp(const ugrid *grid, int flags)
{
    return !(flags & UGRID_PLAIN_ATOMICS) &&
           (ugrid_i_sorted(grid) || grid->desc.coherent || grid->cell_count < ugrid_i_few_cells);
}

/* Adds the values of particles to their cells; with `aggregate`, lanes with the same cell are
   reduced first. */
__global__ void __launch_bounds__(ugrid_i_block)
    ugrid_i_sums_kernel(__grid_constant__ const ugrid_device device, const ugrid_real *values,
                        int32_t width, bool places, bool aggregate, ugrid_real *sums)
{
    const ugrid &grid = device.grid;
    int32_t const k = ugrid_i_thread();
    bool const exists = k < grid.n;
    int32_t number = -1, row = 0;
    ugrid_real p[3];
    if (exists) {
        ugrid_point(&grid, k, p);
        row = places ? k : ugrid_id(&grid, k);
        if (ugrid_i_point_finite(p) && !ugrid_i_is_outside(&grid, p))
            number = ugrid_cell_at(&grid, p);
    }
    unsigned const peers =
        aggregate ? __match_any_sync(0xFFFFFFFFu, number) : 1u << threadIdx.x % 32;
    bool const adds = number >= 0 && __ffs((int)peers) - 1 == (int)(threadIdx.x % 32);
    for (int32_t w = 0; w < width; w++) {
        ugrid_real x = exists ? values[(size_t)row * width + w] : 0;
        if (aggregate) x = ugrid_i_sum_peers(peers, x);
        if (adds) atomicAdd(&sums[(size_t)number * width + w], x);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>search: counts and lists of neighbours, by paths
   ---------------------------------------------------------------------------------------------- */

/* The number of neighbours of the particle at a place. By ranges, the loop counts the particle
   itself and subtracts it at the end, which is cheaper than a test at every candidate. Only a
   particle in no cell does not find itself. */
template <ugrid_path Path>
__device__ int32_t ugrid_i_count_at(const ugrid &grid, int32_t place, ugrid_real radius, bool half)
{
    int32_t count = 0;
    if (!ugrid_i_by_entries(Path)) {
        ugrid_contact contact;
        ugrid_record const own = ugrid_i_fetch_record(&grid.record[place]);
        ugrid_i_each_range<Path>(grid, own.x, place, radius, half, [&](int32_t begin, int32_t end) {
#pragma unroll 4
            for (int32_t k = begin; k < end; k++)
                count += ugrid_i_touch<Path>(grid, own.x, ugrid_i_fetch_record(&grid.record[k]).x,
                                             radius * radius, contact);
        });
        return half || count == 0 ? count : count - 1;
    }
    ugrid_for_each<Path>(grid, place, radius, half, [&](const ugrid_contact &) { count++; });
    return count;
}

template <ugrid_path Path, class Count>
__global__ void __launch_bounds__(128)
    ugrid_i_count_neighbors_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius,
                                   bool half, bool places, Count *counts)
{
    int32_t const place = ugrid_i_thread();
    if (place >= device.grid.n) return;
    counts[places ? place : ugrid_id(&device.grid, place)] =
        ugrid_i_count_at<Path>(device.grid, place, radius, half);
}

/* A warp reduces its counts by shuffles (Blog, Faster Parallel Reductions) and makes one atomic
   (Blog, Warp-Aggregated Atomics). */
template <ugrid_path Path>
__global__ void __launch_bounds__(128)
    ugrid_i_count_pairs_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius,
                               unsigned long long *pairs)
{
    int32_t const place = ugrid_i_thread();
    unsigned long long count =
        place < device.grid.n
            ? (unsigned long long)ugrid_i_count_at<Path>(device.grid, place, radius, true)
            : 0;
    for (int distance = 16; distance > 0; distance /= 2)
        count += __shfl_down_sync(0xFFFFFFFFu, count, distance);
    if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(pairs, count);
}

/* As this, for boxes that overlap (>>boxes in ugrid.h). */
__global__ void ugrid_i_count_overlaps_kernel(__grid_constant__ const ugrid_device device,
                                              unsigned long long *pairs)
{
    int32_t const place = ugrid_i_thread();
    unsigned long long count = 0;
    if (place < device.grid.n) {
        ugrid_near walk = ugrid_near_overlaps_half(&device, place);
        while (ugrid_next(&walk)) count += (unsigned)ugrid_overlap(&device.grid, place, walk.id);
    }
    for (int distance = 16; distance > 0; distance /= 2)
        count += __shfl_down_sync(0xFFFFFFFFu, count, distance);
    if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(pairs, count);
}

/* Rows are staged in shared memory, warp by warp. Each lane finds hits of its own row, one at a
   time, and a direct store of 4 bytes per lane would touch 32 sectors. From the stage each row is
   stored in one piece. 1280 = 32 rows of 40. A warp with longer rows handles them in groups: as
   many lanes as fit find their hits at a time. A row that does not fit is stored directly. */
constexpr int ugrid_i_stage = 1280, ugrid_i_fill_warps = 4;

struct ugrid_i_staged_row {
    int64_t begin;          /* its first index in the list */
    int32_t length, staged; /* its length, its first index in the stage */
};

/* The lanes first .. last-1 whose rows are in the stage at the same time. */
struct ugrid_i_row_group {
    int first, last;
    bool staged; /* no: the row of one lane does not fit */
};

__device__ ugrid_i_row_group ugrid_i_next_group(const ugrid_i_staged_row &row, int first)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t const before = __shfl_sync(0xFFFFFFFFu, row.staged, first);
    unsigned const fits = __ballot_sync(
        0xFFFFFFFFu, lane >= first && row.staged + row.length - before <= ugrid_i_stage);
    return {first, first + (fits ? __popc(fits) : 1), fits != 0};
}

/* Stores the rows of a group in the list. Rows by place are contiguous there as in the stage: one
   piece. */
__device__ void ugrid_i_flush_by_place(const ugrid_i_staged_row &row,
                                       const ugrid_i_row_group &group, const int32_t *stage,
                                       int32_t *ids, int64_t capacity)
{
    int const lane = (int)(threadIdx.x % 32);
    int64_t const begin = __shfl_sync(0xFFFFFFFFu, (long long)row.begin, group.first);
    int32_t const before = __shfl_sync(0xFFFFFFFFu, row.staged, group.first),
                  end = __shfl_sync(0xFFFFFFFFu, row.staged + row.length, group.last - 1),
                  total = end - before;
    int32_t const room = capacity - begin > total ? total
                         : capacity > begin       ? (int32_t)(capacity - begin)
                                                  : 0;
    for (int32_t at = lane; at < room; at += 32) ids[begin + at] = stage[at];
}

/* Of the row, as many as the list has room for. */
__device__ int32_t ugrid_i_room_of(const ugrid_i_staged_row &row, int64_t capacity)
{
    int64_t const left = capacity - row.begin;
    return left > row.length ? row.length : left > 0 ? (int32_t)left : 0;
}

/* Rows by id are scattered: each half of the warp stores one row at a time, and has three entries
   of each of two rows on their way. `names`: of the places in the stage; none if it has the
   names. */
__device__ void ugrid_i_flush_by_id(const ugrid_i_staged_row &row, const ugrid_i_row_group &group,
                                   const int32_t *names, const int32_t *stage, int32_t *ids,
                                   int64_t capacity)
{
    constexpr int half = 16, rows = 2, entries = 3;
    int const lane = (int)(threadIdx.x % 32), own = lane % half;
    int32_t const before = __shfl_sync(0xFFFFFFFFu, row.staged, group.first),
                  own_room = ugrid_i_room_of(row, capacity);
    for (int pair = group.first; pair < group.last; pair += 2 * rows) {
        int32_t *to[rows];
        const int32_t *from[rows];
        int32_t room[rows], name[rows][entries];
#pragma unroll
        for (int k = 0; k < rows; k++) {
            int const r = pair + 2 * k + lane / half, there = min(r, 31);
            to[k] = ids + __shfl_sync(0xFFFFFFFFu, (long long)row.begin, there);
            from[k] = stage + (__shfl_sync(0xFFFFFFFFu, row.staged, there) - before);
            room[k] = __shfl_sync(0xFFFFFFFFu, own_room, there);
            if (r >= group.last) room[k] = 0;
#pragma unroll
            for (int e = 0; e < entries; e++) {
                int32_t const at = own + half * e;
                name[k][e] = at < room[k] ? from[k][at] : 0;
                if (names) name[k][e] = names[name[k][e]];
            }
        }
#pragma unroll
        for (int k = 0; k < rows; k++) {
#pragma unroll
            for (int e = 0; e < entries; e++)
                if (own + half * e < room[k]) to[k][own + half * e] = name[k][e];
            for (int32_t at = own + half * entries; at < room[k]; at += half)
                to[k][at] = names ? names[from[k][at]] : from[k][at];
        }
    }
}

__device__ ugrid_i_staged_row ugrid_i_row_of(bool exists, int32_t number, const int64_t *offsets)
{
    ugrid_i_staged_row row = {0, 0, 0};
    if (exists) {
        row.begin = offsets[number];
        row.length = (int32_t)(offsets[number + 1] - row.begin);
    }
    row.staged = ugrid_i_warp_prefix(row.length);
    return row;
}

/* The destination of the thread's row: the stage, or the list itself, never beyond the caller's
   capacity. */
struct ugrid_i_writer {
    int32_t *to;
    int32_t room, at;
    __device__ void put(int32_t name)
    {
        if (at < room) to[at] = name;
        at++;
    }
};

__device__ ugrid_i_writer ugrid_i_writer_of(const ugrid_i_staged_row &row, bool staged,
                                            int32_t before, int32_t *stage, int32_t *ids,
                                            int64_t capacity)
{
    if (staged) return {stage + (row.staged - before), row.length, 0};
    return {ids + row.begin, ugrid_i_room_of(row, capacity), 0};
}

/* fill(writer) for the row of each lane, group by group. `names`: of the places that it puts; null:
   it puts what the list shall have. */
template <class Fill>
__device__ __forceinline__ void ugrid_i_fill_rows(bool exists, int32_t number, bool places,
                                                  const int32_t *names, const int64_t *offsets,
                                                  int32_t *ids, int64_t capacity, Fill fill)
{
    __shared__ int32_t stages[ugrid_i_fill_warps][ugrid_i_stage];
    int32_t *const stage = stages[threadIdx.x / 32];
    int const lane = (int)(threadIdx.x % 32);
    ugrid_i_staged_row const row = ugrid_i_row_of(exists, number, offsets);
    for (int first = 0; first < 32;) {
        ugrid_i_row_group const group = ugrid_i_next_group(row, first);
        int32_t const before = __shfl_sync(0xFFFFFFFFu, row.staged, first);
        ugrid_i_writer writer = ugrid_i_writer_of(row, group.staged, before, stage, ids, capacity);
        bool const mine = exists && lane >= group.first && lane < group.last;
        if (mine) fill(writer);
        if (mine && names && !group.staged)
            for (int32_t k = 0; k < writer.room; k++) writer.to[k] = names[writer.to[k]];
        __syncwarp();
        if (group.staged && places) ugrid_i_flush_by_place(row, group, stage, ids, capacity);
        else if (group.staged) ugrid_i_flush_by_id(row, group, names, stage, ids, capacity);
        __syncwarp();
        first = group.last;
    }
}

/* The second of two passes, any path: the search again, which stores each hit at the offsets of the
   first pass. */
template <ugrid_path Path>
__global__ void __launch_bounds__(32 * ugrid_i_fill_warps)
    ugrid_i_fill_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius, bool half,
                        bool places, const int64_t *offsets, int32_t *ids, int64_t capacity)
{
    int32_t const place = ugrid_i_thread();
    bool const exists = place < device.grid.n;
    int32_t const number = exists && !places ? ugrid_id(&device.grid, place) : place;
    ugrid_i_fill_rows(exists, number, places, nullptr, offsets, ids, capacity,
                      [&](ugrid_i_writer &writer) {
                          ugrid_for_each<Path>(device.grid, place, radius, half,
                                               [&](const ugrid_contact &contact) {
                                                   writer.put(places ? contact.place_j : contact.j);
                                               });
                      });
}

__host__ __device__ int ugrid_i_words_of(const ugrid *grid)
{
    return grid->desc.dim == 2 ? ugrid_i_words_flat : ugrid_i_words;
}

/* Memory for the hit bits of n particles. Searches that store none allocate
   none. */
ugrid_result ugrid_i_reserve_hits(ugrid_cuda *gpu, int32_t n, int exact, cudaStream_t stream)
{
    const ugrid *grid = &gpu->device.grid;
    if (!grid->record || !ugrid_i_sorted(grid) || grid->desc.unbounded ||
        !ugrid_i_has_strips(grid->desc.cell_order))
        return UGRID_OK;
    return ugrid_i_cuda_grow(gpu, &gpu->scratch[UGRID_I_HIT_BITS],
                             ((size_t)n + 1) * (size_t)ugrid_i_words_of(grid) * sizeof(uint32_t),
                             exact, stream);
}

/* ----------------------------------------------------------------------------------------------
   >>hits: the first pass stores its results, one bit per candidate (>>pieces), so that the
   second need not test them again. One ring of cells makes at most 9 strips (3 in 2D) of about 20
   candidates. There are two words for each strip. Pieces beyond them (radius > cell, crowded cells)
   store no bits and are tested twice.
   ---------------------------------------------------------------------------------------------- */

template <ugrid_path Path>
__global__ void __launch_bounds__(128)
    ugrid_i_hits_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius, bool half,
                        bool places, ugrid_i_hit_bits kept, int64_t *lengths)
{
    const ugrid &grid = device.grid;
    int32_t const place = ugrid_i_thread();
    if (place >= grid.n) return;
    ugrid_record const own = ugrid_i_fetch_record(&grid.record[place]);
    int32_t length = 0;
    int word = 0;
    ugrid_i_each_range<Path>(grid, own.x, place, radius, half, [&](int32_t first, int32_t last) {
        ugrid_i_cut_strip(first, last, [&](int32_t begin, int32_t end) {
            uint32_t const found =
                ugrid_i_piece_hits<Path>(grid, own.x, radius * radius, begin, end) &
                ugrid_i_listed(place, half, begin, end);
            if (kept.keeps(word)) *kept.at(word, place) = found;
            word++;
            length += __popc(found);
        });
    });
    kept.end(word, place);
    lengths[places ? place : own.link] = length;
}

/* ----------------------------------------------------------------------------------------------
   >>twins: two places per thread (>>pieces)
   ---------------------------------------------------------------------------------------------- */

/* Row lengths and, if `kept` keeps any, hit bits of two places per thread. */
template <class Length>
__global__ void __launch_bounds__(128, 8)
    ugrid_i_twins_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius, bool half,
                         bool places, ugrid_i_hit_bits kept, Length *lengths)
{
    const ugrid &grid = device.grid;
    int32_t const place = 2 * ugrid_i_thread(), last = grid.n - 1;
    ugrid_record const own[2] = {ugrid_i_fetch_record(&grid.record[min(place, last)]),
                                 ugrid_i_fetch_record(&grid.record[min(place + 1, last)])};
    int32_t length[2];
    ugrid_i_search_twins(grid, place, own, radius, radius * radius, half, kept, length);
#pragma unroll
    for (int t = 0; t < 2; t++)
        if (place + t < grid.n) lengths[places ? place + t : own[t].link] = length[t];
}

template <ugrid_path Path, bool Twins>
__global__ void __launch_bounds__(32 * ugrid_i_fill_warps)
    ugrid_i_fill_hits_kernel(__grid_constant__ const ugrid_device device, ugrid_real radius,
                             bool half, bool places, ugrid_i_hit_bits kept, const int64_t *offsets,
                             int32_t *ids, int64_t capacity)
{
    const ugrid &grid = device.grid;
    int32_t const place = ugrid_i_thread();
    bool const exists = place < grid.n;
    ugrid_record const own = ugrid_i_fetch_record(&grid.record[exists ? place : 0]);
    const int32_t *const names = places ? nullptr : grid.order;
    auto const each = [&](auto take) {
        auto const piece = [&](int32_t begin, int32_t end) {
            take(begin, end, [&] {
                return ugrid_i_piece_hits<Path>(grid, own.x, radius * radius, begin, end) &
                       ugrid_i_listed(place, half, begin, end);
            });
        };
        if (Twins) ugrid_i_each_twin_piece(grid, own.x, place, radius, half, piece);
        else
            ugrid_i_each_range<Path>(grid, own.x, place, radius, half,
                                     [&](int32_t first, int32_t last) {
                                         ugrid_i_cut_strip(first, last, piece);
                                     });
    };
    auto const fill = [&](ugrid_i_writer &writer) {
        ugrid_i_second_pass(kept, place, each, [&](int32_t k) { writer.put(k); });
    };
    ugrid_i_fill_rows(exists, places ? place : own.link, places, names, offsets, ids, capacity,
                      fill);
}

/* f(id) for the neighbours of one query point. */
template <class F>
__device__ void ugrid_i_for_each_at(const ugrid &grid, const ugrid_real p[3], ugrid_real radius,
                                    F f)
{
    ugrid_near walk = ugrid_near_within(&grid, p, radius);
    ugrid_real at[3], q[3];
    ugrid_i_wrap_point(&grid, p, at);
    while (ugrid_next(&walk)) {
        ugrid_point(&grid, walk.place, q);
        if (ugrid_i_distance2_in_box(&grid, at, q) <= radius * radius) f(walk.id);
    }
}

/* Query points: the counts per row or, once offsets are known, the rows. */
__global__ void __launch_bounds__(128)
    ugrid_i_points_kernel(__grid_constant__ const ugrid_device device, const ugrid_real *points,
                          size_t stride, int32_t m, ugrid_real radius, int64_t *offsets,
                          int32_t *ids, int64_t capacity)
{
    int32_t const q = ugrid_i_thread();
    ugrid_real p[3];
    if (q >= m) return;
    ugrid_i_load(points, stride, device.grid.desc.dim, q, p);
    int64_t at = ids ? offsets[q] : 0;
    ugrid_i_for_each_at(device.grid, p, radius, [&](int32_t id) {
        if (ids && at < capacity) ids[at] = id;
        at++;
    });
    if (!ids) offsets[q] = at;
}

/* Exclusive prefix sum: row lengths in offsets[0 .. rows-1] become begins, offsets[rows] their
   sum. */
ugrid_result ugrid_i_cuda_row_begins(ugrid_cuda *gpu, int64_t *offsets, int64_t rows,
                                     cudaStream_t stream)
{
    size_t temp = 0;
    if (ugrid_i_failed(gpu, cudaMemsetAsync(offsets + rows, 0, sizeof *offsets, stream)))
        return UGRID_CUDA_ERROR;
    if (ugrid_i_failed(gpu,
                       ugrid_i_exclusive_sum(nullptr, temp, offsets, offsets, rows + 1, stream)))
        return UGRID_CUDA_ERROR;
    /* grows only if rows exceed the n reserved */
    ugrid_result const result =
        ugrid_i_cuda_grow(gpu, &gpu->scratch[UGRID_I_TEMP], temp, 0, stream);
    if (result != UGRID_OK) return result;
    return ugrid_i_failed(gpu, ugrid_i_exclusive_sum(gpu->scratch[UGRID_I_TEMP].memory, temp,
                                                     offsets, offsets, rows + 1, stream))
               ? UGRID_CUDA_ERROR
               : UGRID_OK;
}

template <class Count>
ugrid_result ugrid_i_launch_counts(ugrid_cuda *gpu, ugrid_real radius, int flags, Count *counts,
                                   cudaStream_t stream)
{
    void (*const kernels[UGRID_PATHS])(const ugrid_device, ugrid_real, bool, bool, Count *) = {
        ugrid_i_count_neighbors_kernel<UGRID_PATH_WALK, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_RANGES, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_STRIPS, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_IMAGES, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_FILTERED, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_SPECIAL, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_FILTERED_SPECIAL, Count>,
        ugrid_i_count_neighbors_kernel<UGRID_PATH_HASHED, Count>};
    ugrid_path const path = ugrid_path_of(&gpu->device.grid);
    bool const half = (flags & UGRID_HALF) != 0, places = (flags & UGRID_PLACES) != 0;
    int32_t const n = gpu->device.grid.n;
    if (ugrid_i_twins(&gpu->device.grid, path))
        return ugrid_i_launch(gpu, stream, (n + 1) / 2, 128, ugrid_i_twins_kernel<Count>,
                              gpu->device, radius, half, places, ugrid_i_hit_bits{}, counts);
    return ugrid_i_launch(gpu, stream, n, 128, kernels[path], gpu->device, radius, half, places,
                          counts);
}

/* The grid with the walk of lists. */
ugrid_device ugrid_i_list_view(const ugrid_cuda *gpu)
{
    ugrid_device device = gpu->device;
    device.grid.desc.walk = ugrid_i_list_walk(&device.grid);
    return device;
}

/* A list in two passes, each of which searches. */
ugrid_result ugrid_i_list_twice(ugrid_cuda *gpu, const ugrid_device &device, ugrid_real radius,
                                int flags, int64_t *offsets, int32_t *ids, int64_t capacity,
                                cudaStream_t stream)
{
    bool const half = (flags & UGRID_HALF) != 0, places = (flags & UGRID_PLACES) != 0;
    int32_t const n = gpu->device.grid.n;
    void (*const fills[UGRID_PATHS])(const ugrid_device, ugrid_real, bool, bool, const int64_t *,
                                     int32_t *, int64_t) = {
        ugrid_i_fill_kernel<UGRID_PATH_WALK>,     ugrid_i_fill_kernel<UGRID_PATH_RANGES>,
        ugrid_i_fill_kernel<UGRID_PATH_RANGES>,   ugrid_i_fill_kernel<UGRID_PATH_RANGES>,
        ugrid_i_fill_kernel<UGRID_PATH_FILTERED>, ugrid_i_fill_kernel<UGRID_PATH_SPECIAL>,
        ugrid_i_fill_kernel<UGRID_PATH_FILTERED_SPECIAL>, ugrid_i_fill_kernel<UGRID_PATH_HASHED>};
    ugrid_result result = ugrid_i_launch_counts(gpu, radius, flags, offsets, stream);
    if (result == UGRID_OK) result = ugrid_i_cuda_row_begins(gpu, offsets, n, stream);
    if (result != UGRID_OK || capacity == 0) return result;
    return ugrid_i_launch(gpu, stream, n, 32 * ugrid_i_fill_warps,
                          fills[ugrid_path_of(&device.grid)], device, radius, half, places, offsets,
                          ids, capacity);
}

/* A list by strips: the first pass stores its hits as bits. */
ugrid_result ugrid_i_list_strips(ugrid_cuda *gpu, const ugrid_device &device, ugrid_real radius,
                                 int flags, int64_t *offsets, int32_t *ids, int64_t capacity,
                                 cudaStream_t stream)
{
    bool const half = (flags & UGRID_HALF) != 0, places = (flags & UGRID_PLACES) != 0;
    bool const images = ugrid_path_of(&device.grid) == UGRID_PATH_IMAGES;
    int32_t const n = gpu->device.grid.n;
    auto const search =
        images ? ugrid_i_hits_kernel<UGRID_PATH_IMAGES> : ugrid_i_hits_kernel<UGRID_PATH_STRIPS>;
    bool const twins = ugrid_i_twins(&device.grid, ugrid_path_of(&device.grid));
    auto const fill = images  ? ugrid_i_fill_hits_kernel<UGRID_PATH_IMAGES, false>
                      : twins ? ugrid_i_fill_hits_kernel<UGRID_PATH_STRIPS, true>
                              : ugrid_i_fill_hits_kernel<UGRID_PATH_STRIPS, false>;
    /* allocates nothing after ugrid_cuda_reserve */
    ugrid_result result = ugrid_i_reserve_hits(gpu, n, 0, stream);
    ugrid_i_hit_bits const kept = {ugrid_i_scratch<uint32_t>(gpu, UGRID_I_HIT_BITS),
                               ugrid_i_words_of(&device.grid), ugrid_i_word_stride(n)};
    if (result == UGRID_OK)
        result = twins ? ugrid_i_launch(gpu, stream, (n + 1) / 2, 128,
                                        ugrid_i_twins_kernel<int64_t>, device, radius, half, places,
                                        kept, offsets)
                       : ugrid_i_launch(gpu, stream, n, 128, search, device, radius, half, places,
                                        kept, offsets);
    if (result == UGRID_OK) result = ugrid_i_cuda_row_begins(gpu, offsets, n, stream);
    if (result != UGRID_OK) return result;
    return ugrid_i_launch(gpu, stream, n, 32 * ugrid_i_fill_warps, fill, device, radius, half,
                          places, kept, offsets, ids, capacity);
}

ugrid_result ugrid_i_check_cuda_search(const ugrid_cuda *gpu, ugrid_real radius, int flags)
{
    if (!gpu) return UGRID_BAD_ARGUMENT;
    ugrid_result const result = ugrid_i_check_search(&gpu->device.grid, radius, flags);
    return result == UGRID_OK ? ugrid_i_check_filter(&gpu->device.grid, radius) : result;
}

/* Copies one array from the device into a block of a host grid, unless an earlier copy failed. */
void ugrid_i_fetch(ugrid *grid, int which, const void *from, size_t bytes, cudaStream_t stream,
                   cudaError_t *error)
{
    if (!from || bytes == 0 || *error != cudaSuccess) return;
    *error =
        cudaMemcpyAsync(grid->block[which].memory, from, bytes, cudaMemcpyDeviceToHost, stream);
}

/* Copies one array into the device memory of a grid, unless an earlier copy failed. */
void ugrid_i_send(void *to, const void *from, size_t bytes, cudaStream_t stream,
                  cudaError_t *error)
{
    if (!from || bytes == 0 || *error != cudaSuccess) return;
    *error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
}

/* Copies the arrays of a host grid into a device grid that has memory for them. */
cudaError_t ugrid_i_send_grid(ugrid_cuda *gpu, const ugrid *grid, cudaStream_t stream)
{
    const ugrid *device = &gpu->device.grid;
    const int32_t *by_cell = grid->start ? grid->start : grid->count ? grid->count : grid->head;
    size_t const word = sizeof(int32_t), n = (size_t)grid->n, cells = (size_t)grid->cell_count,
                 ordered = ugrid_i_tight(grid) ? (size_t)grid->entries : n;
    cudaError_t error = cudaSuccess;
    ugrid_cuda_facts facts = {};
    facts.outside = grid->outside;
    facts.invalid = grid->invalid;
    ugrid_i_send(gpu->block[UGRID_I_START].memory, by_cell, (cells + (grid->start ? 1 : 0)) * word,
                 stream, &error);
    ugrid_i_send(device->order, grid->order, ordered * word, stream, &error);
    ugrid_i_send(device->inverse, grid->inverse, n * word, stream, &error);
    ugrid_i_send(device->record, grid->record, n * sizeof(ugrid_record), stream, &error);
    ugrid_i_send(device->slot, grid->slot, cells * (size_t)grid->desc.slots * word, stream, &error);
    ugrid_i_send(device->next, grid->next, n * (size_t)grid->spans * word, stream, &error);
    ugrid_i_send(gpu->d_facts, &facts, sizeof facts, stream, &error);
    cudaError_t const waited = cudaStreamSynchronize(stream);
    return error != cudaSuccess ? error : waited;
}

/* The number of entries of a downloaded grid. */
int32_t ugrid_i_count_entries(const ugrid *grid)
{
    int32_t entries = 0, c, e;
    if (grid->start) return grid->start[grid->cell_count];
    for (c = 0; c < grid->cell_count; c++) {
        if (grid->count) entries += grid->count[c];
        else
            for (e = grid->head[c]; e >= 0; e = grid->next ? grid->next[e] : grid->record[e].link)
                entries++;
    }
    return entries;
}

} /* namespace */

/* ----------------------------------------------------------------------------------------------
   >>query: the functions that the header declares
   ---------------------------------------------------------------------------------------------- */

extern "C" {

UGRID_API ugrid_result ugrid_cuda_fit(ugrid_desc *desc, const ugrid_real *d_pos, size_t stride,
                                      int32_t n, struct CUstream_st *stream)
{
    ugrid_i_extent extent;
    bool const cell_given = desc && desc->cell != 0;
    if (!desc || n < 0 || (n > 0 && !d_pos)) return UGRID_BAD_ARGUMENT;
    if (desc->dim == 0) desc->dim = 3;
    if (desc->dim != 2 && desc->dim != 3) return UGRID_BAD_DIM;
    if (!ugrid_i_stride_valid(stride, desc->dim)) return UGRID_BAD_ARGUMENT;
    if (stride == 0) stride = (size_t)desc->dim * sizeof *d_pos;
    bool const fits_box = !desc->unbounded && !ugrid_i_box_given(desc);
    if (fits_box && ugrid_i_any_periodic(desc)) return UGRID_BAD_BOX;
    if (fits_box && n > 0) {
        ugrid_result const result = ugrid_i_measure_extent(desc, d_pos, stride, n, stream, &extent);
        if (result != UGRID_OK) return result;
        if (extent.bad_id != UINT_MAX && !desc->skip_invalid) return UGRID_NOT_FINITE;
        if (extent.min[0] <= extent.max[0]) /* some point is finite */
            for (int a = 0; a < desc->dim; a++) {
                desc->min[a] = ugrid_i_real_of(extent.min[a]);
                desc->max[a] = ugrid_i_real_of(extent.max[a]);
            }
    }
    if (desc->cell == 0) desc->cell = ugrid_i_fit_cell(desc, n);
    if (fits_box) ugrid_i_fit_flat_axes(desc, cell_given);
    if (fits_box && ugrid_i_check_box(desc) != UGRID_OK) return UGRID_BOX_TOO_WIDE;
    if (fits_box && !cell_given) {
        ugrid_i_sample sample;
        sample.count = 0;
        sample.parts = ugrid_i_sample_parts(n);
        for (int32_t k = 0; k < sample.parts; k++) ugrid_i_take_sample(&sample, extent.sample[k]);
        if (sample.count > 1) ugrid_i_fit_crowded(desc, &sample, n);
    }
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_cuda_reserve(ugrid_cuda *gpu, const ugrid_desc *desc, int32_t n,
                                          struct CUstream_st *stream)
{
    if (!gpu) return UGRID_BAD_ARGUMENT;
    ugrid_result result = ugrid_i_cuda_begin(gpu, desc, stream);
    if (result == UGRID_OK && n < 0) result = UGRID_BAD_ARGUMENT;
    if (result == UGRID_OK) result = ugrid_i_cuda_prepare(gpu, n, 1, stream);
    if (result == UGRID_OK && gpu->may_split && gpu->device.grid.desc.split == 1) {
        ugrid_desc cut = *desc; /* what builds may choose later */
        ugrid_desc most = gpu->device.grid.desc;
        most.cell = cut.cell;
        if (cut.cell == 0) cut.cell = ugrid_i_cuda_cell(&most, DBL_MAX, n);
        cut.split = ugrid_i_split_into;
        result = ugrid_i_cuda_begin(gpu, &cut, stream);
        if (result == UGRID_OK) result = ugrid_i_cuda_prepare(gpu, n, 1, stream);
        if (result == UGRID_OK) result = ugrid_i_cuda_begin(gpu, desc, stream);
        if (result == UGRID_OK) result = ugrid_i_cuda_prepare(gpu, n, 1, stream);
    }
    return result == UGRID_OK ? ugrid_i_reserve_hits(gpu, n, 1, stream) : result;
}

UGRID_API ugrid_result ugrid_cuda_build(ugrid_cuda *gpu, const ugrid_desc *desc,
                                        const ugrid_real *d_pos, size_t stride, int32_t n,
                                        struct CUstream_st *stream)
{
    if (!gpu) return UGRID_BAD_ARGUMENT;
    ugrid *grid = &gpu->device.grid;
    ugrid_result result = ugrid_i_cuda_begin(gpu, desc, stream);
    if (result != UGRID_OK) return result;
    size_t const tight = (size_t)grid->desc.dim * sizeof *d_pos;
    if (n < 0 || (n > 0 && !d_pos) || !ugrid_i_stride_valid(stride, grid->desc.dim))
        return UGRID_BAD_ARGUMENT;
    result = ugrid_i_cuda_prepare(gpu, n, 0, stream);
    if (result != UGRID_OK) return result;
    grid->pos = d_pos;
    grid->stride = stride ? stride : tight;
    grid->n = grid->rows = n;
    if (ugrid_i_asks_crowd(gpu, n, stream)) result = ugrid_i_choose_again(gpu, desc, stream);
    if (result == UGRID_OK) result = ugrid_i_cuda_build_method(gpu, stream);
    if (result == UGRID_OK && grid->desc.grow && grid->desc.method == UGRID_FIXED)
        result = ugrid_i_cuda_build_again(gpu, stream);
    grid->built = result == UGRID_OK;
    if (!grid->built) grid->n = grid->rows = 0;
    return result;
}

UGRID_API ugrid_result ugrid_cuda_check(ugrid_cuda *gpu, struct CUstream_st *stream)
{
    ugrid_cuda_facts facts;
    if (!gpu) return UGRID_BAD_ARGUMENT;
    ugrid *grid = &gpu->device.grid;
    ugrid_result fetched = ugrid_i_sample_crowd(gpu, stream);
    if (fetched == UGRID_OK) fetched = ugrid_i_fetch_facts(gpu, &facts, stream);
    if (fetched != UGRID_OK) return fetched;
    if (!grid->built) return UGRID_NOT_BUILT;
    if (gpu->may_split && grid->record) { /* it was sampled */
        gpu->crowd = (double)facts.others / ugrid_i_crowd_samples * ugrid_i_cells_per_volume(grid);
        gpu->crowd_known = 1;
    }
    bool const refuses = grid->desc.outside == UGRID_REFUSE && facts.first_outside;
    bool const invalid = facts.first_bad && !(grid->desc.skip_invalid && refuses);
    grid->bad_id = invalid   ? INT_MAX - facts.first_bad
                   : refuses ? INT_MAX - facts.first_outside
                             : -1;
    grid->outside = facts.outside;
    grid->invalid = facts.invalid;
    grid->needed_slots = facts.needed_slots;
    bool const full = facts.needed_slots > grid->desc.slots;
    if (invalid && !(grid->desc.skip_invalid && full)) return UGRID_NOT_FINITE;
    if (refuses) return UGRID_OUTSIDE_BOX;
    return full ? UGRID_CELL_FULL : UGRID_OK;
}

UGRID_API void ugrid_cuda_free(ugrid_cuda *gpu)
{
    if (!gpu) return;
    for (int b = 0; b < UGRID_BLOCKS; b++)
        ugrid_i_cuda_release(&gpu->device.grid.desc.cuda_allocator, &gpu->block[b], gpu->stream);
    for (int b = 0; b < UGRID_CUDA_SCRATCH; b++)
        ugrid_i_cuda_release(&gpu->device.grid.desc.cuda_allocator, &gpu->scratch[b], gpu->stream);
    if (gpu->near_samples) { /* a build may be about to write it */
        (void)cudaStreamSynchronize(gpu->stream);
        (void)cudaFreeHost(gpu->near_samples);
    }
    memset(gpu, 0, sizeof *gpu);
}

UGRID_API ugrid_result ugrid_cuda_upload(ugrid_cuda *gpu, const ugrid *grid,
                                         struct CUstream_st *stream)
{
    if (!gpu || !grid) return UGRID_BAD_ARGUMENT;
    if (!grid->built) return UGRID_NOT_BUILT;
    ugrid *device = &gpu->device.grid;
    ugrid_desc desc = grid->desc;
    if (device->desc.cuda_allocator.alloc) desc.cuda_allocator = device->desc.cuda_allocator;
    device->desc.grow = 0; /* the slots of an earlier grid do not count */
    ugrid_result result = ugrid_i_cuda_begin(gpu, &desc, stream);
    if (result == UGRID_OK) result = ugrid_i_cuda_prepare(gpu, grid->n, 0, stream);
    if (result != UGRID_OK) return result;
    if (ugrid_i_failed(gpu, ugrid_i_send_grid(gpu, grid, stream))) return UGRID_CUDA_ERROR;
    device->n = device->rows = grid->n;
    device->entries = grid->entries;
    device->outside = grid->outside;
    device->invalid = grid->invalid;
    device->pos = device->desc.half_extents = nullptr;
    device->stride = (size_t)desc.dim * sizeof(ugrid_real);
    device->built = 1;
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_cuda_download(ugrid *grid, const ugrid_cuda *gpu,
                                           struct CUstream_st *stream)
{
    if (!grid || !gpu) return UGRID_BAD_ARGUMENT;
    const ugrid *device = &gpu->device.grid;
    size_t bytes[UGRID_BLOCKS];
    grid->n = grid->entries = grid->built = 0;
    if (!device->built) return UGRID_NOT_BUILT;
    if (device->n == 0) return ugrid_build(grid, &device->desc, nullptr, 0, 0);
    ugrid_result result = ugrid_i_begin(grid, &device->desc);
    if (result == UGRID_OK) result = ugrid_i_prepare(grid, device->n, 0);
    if (result == UGRID_OK) result = ugrid_i_sizes(grid, device->n, bytes);
    if (result != UGRID_OK) return result;
    size_t const cells = (size_t)grid->cell_count * sizeof(int32_t),
                 starts = grid->start ? cells + sizeof(int32_t) : cells;
    cudaError_t error = cudaSuccess;
    ugrid_i_fetch(grid, UGRID_I_START, gpu->block[UGRID_I_START].memory, starts, stream, &error);
    ugrid_i_fetch(grid, UGRID_I_ORDER, device->order, bytes[UGRID_I_ORDER], stream, &error);
    ugrid_i_fetch(grid, UGRID_I_INVERSE, device->inverse, bytes[UGRID_I_INVERSE], stream, &error);
    ugrid_i_fetch(grid, UGRID_I_RECORD, device->record, bytes[UGRID_I_RECORD], stream, &error);
    ugrid_i_fetch(grid, UGRID_I_SLOT, device->slot, bytes[UGRID_I_SLOT], stream, &error);
    ugrid_i_fetch(grid, UGRID_I_NEXT, device->next, bytes[UGRID_I_NEXT], stream, &error);
    ugrid_cuda_facts facts = {};
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(&facts, gpu->d_facts, sizeof facts, cudaMemcpyDeviceToHost, stream);
    cudaError_t const waited = cudaStreamSynchronize(stream);
    grid->cuda_error = error != cudaSuccess ? error : waited;
    if (grid->cuda_error) {
        (void)cudaGetLastError(); /* reported */
        return UGRID_CUDA_ERROR;
    }
    grid->n = grid->rows = device->n;
    grid->outside = facts.outside;
    grid->invalid = facts.invalid;
    if (facts.first_bad) grid->bad_id = INT_MAX - facts.first_bad;
    grid->built = 1;
    grid->entries = ugrid_i_count_entries(grid);
    grid->pos = grid->desc.half_extents = nullptr;
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_cuda_gather(ugrid_cuda *gpu, const void *d_src, size_t bytes,
                                         void *d_dst, struct CUstream_st *stream)
{
    return ugrid_i_move(gpu, d_src, bytes, d_dst, true, stream);
}

UGRID_API ugrid_result ugrid_cuda_scatter(ugrid_cuda *gpu, const void *d_src, size_t bytes,
                                          void *d_dst, struct CUstream_st *stream)
{
    return ugrid_i_move(gpu, d_src, bytes, d_dst, false, stream);
}

UGRID_API ugrid_result ugrid_cuda_cell_sums(ugrid_cuda *gpu, const ugrid_real *d_values,
                                            int32_t width, int flags, ugrid_real *d_sums,
                                            struct CUstream_st *stream)
{
    if (!gpu || width < 1 || !d_sums || (gpu->device.grid.n > 0 && !d_values))
        return UGRID_BAD_ARGUMENT;
    if (flags & ~((int)UGRID_PLACES | (int)UGRID_PLAIN_ATOMICS)) return UGRID_BAD_OPTION;
    const ugrid *grid = &gpu->device.grid;
    if (!grid->built) return UGRID_NOT_BUILT;
    if (ugrid_i_failed(
            gpu, cudaMemsetAsync(
                     d_sums, 0, (size_t)grid->cell_count * (size_t)width * sizeof *d_sums, stream)))
        return UGRID_CUDA_ERROR;
    return ugrid_i_launch(gpu, stream, grid->n, ugrid_i_block, ugrid_i_sums_kernel, gpu->device,
                          d_values, width, (flags & UGRID_PLACES) != 0,
                          ugrid_i_sums_by_warp(grid, flags), d_sums);
}

UGRID_API ugrid_result ugrid_cuda_count_pairs(ugrid_cuda *gpu, ugrid_real radius, int64_t *d_pairs,
                                              struct CUstream_st *stream)
{
    ugrid_result const result = ugrid_i_check_cuda_search(gpu, radius, 0);
    if (!d_pairs) return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    if (ugrid_i_failed(gpu, cudaMemsetAsync(d_pairs, 0, sizeof *d_pairs, stream)))
        return UGRID_CUDA_ERROR;
    void (*const kernels[UGRID_PATHS])(const ugrid_device, ugrid_real, unsigned long long *) = {
        ugrid_i_count_pairs_kernel<UGRID_PATH_WALK>, ugrid_i_count_pairs_kernel<UGRID_PATH_RANGES>,
        ugrid_i_count_pairs_kernel<UGRID_PATH_STRIPS>,
        ugrid_i_count_pairs_kernel<UGRID_PATH_IMAGES>,
        ugrid_i_count_pairs_kernel<UGRID_PATH_FILTERED>,
        ugrid_i_count_pairs_kernel<UGRID_PATH_SPECIAL>,
        ugrid_i_count_pairs_kernel<UGRID_PATH_FILTERED_SPECIAL>,
        ugrid_i_count_pairs_kernel<UGRID_PATH_HASHED>};
    return ugrid_i_launch(gpu, stream, gpu->device.grid.n, 128,
                          kernels[ugrid_path_of(&gpu->device.grid)], gpu->device, radius,
                          reinterpret_cast<unsigned long long *>(d_pairs));
}

UGRID_API ugrid_result ugrid_cuda_count_overlaps(ugrid_cuda *gpu, int64_t *d_pairs,
                                                 struct CUstream_st *stream)
{
    if (!gpu || !d_pairs) return UGRID_BAD_ARGUMENT;
    ugrid_result const result = ugrid_i_check_overlaps(&gpu->device.grid);
    if (result != UGRID_OK) return result;
    if (ugrid_i_failed(gpu, cudaMemsetAsync(d_pairs, 0, sizeof *d_pairs, stream)))
        return UGRID_CUDA_ERROR;
    return ugrid_i_launch(gpu, stream, gpu->device.grid.n, 128, ugrid_i_count_overlaps_kernel,
                          gpu->device, reinterpret_cast<unsigned long long *>(d_pairs));
}

UGRID_API ugrid_result ugrid_cuda_count_neighbors(ugrid_cuda *gpu, ugrid_real radius, int flags,
                                                  int32_t *d_counts, struct CUstream_st *stream)
{
    ugrid_result const result = ugrid_i_check_cuda_search(gpu, radius, flags);
    if (gpu && gpu->device.grid.n > 0 && !d_counts) return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    return ugrid_i_launch_counts(gpu, radius, flags, d_counts, stream);
}

UGRID_API ugrid_result ugrid_cuda_neighbors(ugrid_cuda *gpu, ugrid_real radius, int flags,
                                            int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                            struct CUstream_st *stream)
{
    ugrid_result result = ugrid_i_check_cuda_search(gpu, radius, flags);
    if (!d_offsets || capacity < 0 || (capacity > 0 && !d_ids)) return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    ugrid_device const device = ugrid_i_list_view(gpu);
    ugrid_path const path = ugrid_path_of(&device.grid);
    bool const strips = path == UGRID_PATH_STRIPS || path == UGRID_PATH_IMAGES;
    if (strips && capacity > 0)
        return ugrid_i_list_strips(gpu, device, radius, flags, d_offsets, d_ids, capacity, stream);
    return ugrid_i_list_twice(gpu, device, radius, flags, d_offsets, d_ids, capacity, stream);
}

UGRID_API ugrid_result ugrid_cuda_neighbors_at(ugrid_cuda *gpu, const ugrid_real *d_points,
                                               size_t stride, int32_t m, ugrid_real radius,
                                               int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                               struct CUstream_st *stream)
{
    ugrid_result result =
        gpu ? ugrid_i_check_search(&gpu->device.grid, radius, 0) : UGRID_BAD_ARGUMENT;
    if (m < 0 || (m > 0 && !d_points) || !d_offsets || capacity < 0 || (capacity > 0 && !d_ids))
        return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    size_t const tight = (size_t)gpu->device.grid.desc.dim * sizeof *d_points;
    if (!ugrid_i_stride_valid(stride, gpu->device.grid.desc.dim)) return UGRID_BAD_ARGUMENT;
    if (stride == 0) stride = tight;
    ugrid_device const device = ugrid_i_list_view(gpu);
    result = ugrid_i_launch(gpu, stream, m, 128, ugrid_i_points_kernel, device, d_points, stride,
                            m, radius, d_offsets, (int32_t *)nullptr, (int64_t)0);
    if (result == UGRID_OK) result = ugrid_i_cuda_row_begins(gpu, d_offsets, m, stream);
    if (result != UGRID_OK || capacity == 0) return result;
    return ugrid_i_launch(gpu, stream, m, 128, ugrid_i_points_kernel, device, d_points, stride, m,
                          radius, d_offsets, d_ids, capacity);
}

} /* extern "C" */

#endif /* UGRID_I_CUDA_TEMPLATES */
