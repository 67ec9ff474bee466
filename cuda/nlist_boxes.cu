/* cuda/nlist_boxes.cu - v0.2.0 - the CUDA part of more/nlist_boxes.h, which includes it.
   SPDX-License-Identifier: MIT OR Unlicense

   For the one .cu file with NLIST_IMPLEMENTATION. Names are those of the serial code there; the
   kernels around the search are those of cuda/nlist.cu.

   >>contents: search for >>, the name and a colon. memory-boxes, boxes. */

#ifndef NLIST_BOXES_H
#error "cuda/nlist_boxes.cu is a part of more/nlist_boxes.h: include that"
#elif 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "cuda/nlist_boxes.cu 0.2.0 and nlist.h are of different versions: copy both from one release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>memory-boxes: work space
   ---------------------------------------------------------------------------------------------- */

namespace {

enum {
    NLIST_I_FRAMES = NLIST_I_PART_SCRATCH, /* frames and extents of the systems */
    NLIST_I_RECORDS, /* particles in the order of cells */
    NLIST_I_BEGINS   /* where each cell begins */
};

} /* namespace */

/* ----------------------------------------------------------------------------------------------
   >>boxes: the kernels (more/nlist_boxes.h: >>boxes)

       frames    a thread per system: its vectors
       extents   a thread per particle: extent of its system, by atomics
       cut       a thread per system: its cells. Those of system s begin at starts[s] + 8 s, since
                 no system has more than its particles, or 8
       keys      a thread per particle: its cell, in the array of all cells
       sort      CUB: stable, so that ids ascend in a cell
       records   a thread per place; a thread per cell finds its begin by bisection
       rows      as with other sources, a thread per place
       extras    shifts, distances and offsets: the thread of a row searches again, beside its
                 entries

   The number of kernels does not depend on the number of systems.
   ---------------------------------------------------------------------------------------------- */

namespace {

/* Doubles as integers of the same order, so that atomics find the least and the greatest. */
__device__ __forceinline__ unsigned long long nlist_i_ordered_bits(double x)
{
    unsigned long long const bits = (unsigned long long)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ double nlist_i_from_ordered_bits(unsigned long long bits)
{
    return __longlong_as_double((long long)(bits >> 63 ? bits ^ 0x8000000000000000ull : ~bits));
}

/* Seven bounds of a system's particles, as such integers: low, high, most. Lows are stored negated,
   so that all are maxima. */
struct nlist_i_bounds {
    unsigned long long most[7];
};

/* A particle, in the order of cells. */
struct nlist_i_record {
    nlist_real p[3];        /* as given */
    int32_t wrap[3];
    int32_t id, system;
};

/* The boxes of a build, and what is made of them. */
struct nlist_i_systems {
    nlist_box one;          /* boxes == NULL: the only box, of all particles */
    const nlist_box *boxes;
    const int32_t *starts;
    int32_t count;
    int64_t cells;          /* of all systems; key `cells`: no cell */
    nlist_i_frame *frame;   /* [count] */
    nlist_i_bounds *bounds; /* [count] */
    uint32_t *key, *sorted_key;
    int32_t *id, *sorted_id;
    nlist_i_record *record; /* [n] */
    int32_t *begin;         /* [cells + 1] */
};

/* The vectors of each system. Systems that are refused are reported, and have no particles. */
__global__ void nlist_i_frames_kernel(__grid_constant__ const nlist_device device,
                                      __grid_constant__ const nlist_i_job job,
                                      __grid_constant__ const nlist_i_systems systems)
{
    int32_t const s = nlist_i_thread();
    if (s >= systems.count) return;
    nlist_i_frame frame;
    int32_t first = systems.starts ? systems.starts[s] : 0,
            end = systems.starts ? systems.starts[s + 1] : job.n;
    bool const ordered = first >= 0 && first <= end && end <= job.n && (s > 0 || first == 0);
    if (!ordered) {
        atomicExch(&job.facts->bad_starts, 1);
        first = end = 0;
    }
    bool const good = nlist_i_frame_of(&frame, systems.boxes ? &systems.boxes[s] : &systems.one,
                                       device.list.desc.dim);
    if (!good) atomicMax(&job.facts->bad_box, INT32_MAX - s);
    frame.first = first;
    frame.n = good ? end - first : 0;
    frame.first_cell = (int64_t)first + 8 * (int64_t)s;
    systems.frame[s] = frame;
    for (int k = 0; k < 7; k++) systems.bounds[s].most[k] = 0;
}

/* The system of particle i, by bisection; -1: of none. */
__device__ __forceinline__ int32_t nlist_i_system_of(const nlist_i_systems &systems, int32_t i)
{
    int32_t low = 0, high = systems.count;
    if (systems.count == 0) return -1;
    while (high - low > 1) {
        int32_t const middle = low + (high - low) / 2;
        if (systems.starts[middle] <= i) low = middle;
        else high = middle;
    }
    const nlist_i_frame &frame = systems.frame[low];
    return i >= frame.first && i - frame.first < frame.n ? low : -1;
}

/* Loads particle i; its system, or -1 where it takes no part. */
__device__ __forceinline__ int32_t nlist_i_load_member(const nlist &list, const nlist_i_job &job,
                                                       const nlist_i_systems &systems, int32_t i,
                                                       nlist_real p[3])
{
    nlist_i_load(job.pos, job.stride, list.desc.dim, i, p);
    return nlist_i_takes_part(list, job, i, p) ? nlist_i_system_of(systems, i) : -1;
}

/* Raises a bound. Lanes of one system reduce first. */
__device__ __forceinline__ void nlist_i_raise(unsigned long long *bound, unsigned long long bits,
                                              bool one_system)
{
    if (one_system) {
        for (int step = 16; step > 0; step /= 2) {
            unsigned long long const other = __shfl_xor_sync(0xFFFFFFFFu, bits, step);
            bits = other > bits ? other : bits;
        }
    }
    if (bits > 0 && (!one_system || threadIdx.x % 32 == 0)) atomicMax(bound, bits);
}

/* The extent of each system, by atomics of its particles. */
__global__ void nlist_i_extents_kernel(__grid_constant__ const nlist_device device,
                                       __grid_constant__ const nlist_i_job job,
                                       __grid_constant__ const nlist_i_systems systems)
{
    int32_t const i = nlist_i_thread();
    nlist_real p[3] = {0, 0, 0};
    int32_t const s = i < job.n ? nlist_i_load_member(device.list, job, systems, i, p) : -1;
    int32_t const first = __shfl_sync(0xFFFFFFFFu, s, 0);
    bool const one_system = __all_sync(0xFFFFFFFFu, s == first || s < 0) && first >= 0;
    if (!one_system && s < 0) return;
    int32_t const of = s < 0 ? first : s;
    const nlist_i_frame &frame = systems.frame[of];
    unsigned long long *const most = systems.bounds[of].most;
    double largest = 0;
    for (int a = 0; a < 3; a++) {
        double const x = p[a] < 0 ? -(double)p[a] : (double)p[a];
        largest = x > largest ? x : largest;
        if (frame.periodic[a]) continue;
        double const f = nlist_i_fraction(&frame, a, p);
        nlist_i_raise(&most[a], s < 0 ? 0 : nlist_i_ordered_bits(-f), one_system);
        nlist_i_raise(&most[3 + a], s < 0 ? 0 : nlist_i_ordered_bits(f), one_system);
    }
    nlist_i_raise(&most[6], s < 0 ? 0 : nlist_i_ordered_bits(largest), one_system);
}

/* Cuts each system into cells. */
__global__ void nlist_i_cut_kernel(__grid_constant__ const nlist_device device,
                                   __grid_constant__ const nlist_i_job job,
                                   __grid_constant__ const nlist_i_systems systems)
{
    int32_t const s = nlist_i_thread();
    if (s >= systems.count) return;
    nlist_i_frame &frame = systems.frame[s];
    const unsigned long long *const most = systems.bounds[s].most;
    nlist_i_extent extent = {{0, 0, 0}, {0, 0, 0}, 0};
    if (most[6] == 0) frame.n = 0; /* no particle takes part */
    if (frame.n == 0) return;
    for (int a = 0; a < 3; a++) {
        if (frame.periodic[a]) continue;
        extent.low[a] = -nlist_i_from_ordered_bits(most[a]);
        extent.high[a] = nlist_i_from_ordered_bits(most[3 + a]);
    }
    extent.most = nlist_i_from_ordered_bits(most[6]);
    if (nlist_i_cut(&frame, &extent, nlist_i_box_gap(&device.list.desc,
                                                     nlist_i_largest(device.list, job.facts))))
        return;
    atomicMax(&job.facts->bad_images, INT32_MAX - s);
    frame.n = 0;
}

/* The key of each particle: its cell in the array of all. */
__global__ void nlist_i_cells_kernel(__grid_constant__ const nlist_device device,
                                     __grid_constant__ const nlist_i_job job,
                                     __grid_constant__ const nlist_i_systems systems)
{
    int32_t const i = nlist_i_thread();
    if (i >= job.n) return;
    nlist_real p[3];
    int32_t cell = 0, wrap[3];
    int32_t const s = nlist_i_load_member(device.list, job, systems, i, p);
    uint32_t key = (uint32_t)systems.cells;
    if (s >= 0 && nlist_i_place(&systems.frame[s], p, &cell, wrap))
        key = (uint32_t)(systems.frame[s].first_cell + cell);
    else if (s >= 0) atomicMax(&job.facts->bad_images, INT32_MAX - s);
    systems.key[i] = key;
    systems.id[i] = i;
}

/* Copies the particles to the order of cells. */
__global__ void nlist_i_records_kernel(__grid_constant__ const nlist_device device,
                                       __grid_constant__ const nlist_i_job job,
                                       __grid_constant__ const nlist_i_systems systems)
{
    int32_t const place = nlist_i_thread();
    if (place >= job.n) return;
    nlist_i_record record = {{0, 0, 0}, {0, 0, 0}, systems.sorted_id[place], -1};
    if (systems.sorted_key[place] != (uint32_t)systems.cells) {
        int32_t cell;
        record.system = nlist_i_load_member(device.list, job, systems, record.id, record.p);
        (void)nlist_i_place(&systems.frame[record.system], record.p, &cell, record.wrap);
    }
    systems.record[place] = record;
}

/* begin[c]: the first place whose key is not below c. */
__global__ void nlist_i_begins_kernel(__grid_constant__ const nlist_i_systems systems, int32_t n)
{
    int64_t const cell = nlist_i_global_thread();
    int32_t low = 0, high = n;
    if (cell > systems.cells) return;
    while (low < high) {
        int32_t const middle = low + (high - low) / 2;
        if (systems.sorted_key[middle] < (uint64_t)cell) low = middle + 1;
        else high = middle;
    }
    systems.begin[cell] = low;
}

/* An entry as the search finds it. */
struct nlist_i_image_entry {
    int32_t id, shift[3];
    nlist_real d[3], d2;
};

/* Calls found(entry) for all entries of the row at a place, in the order of cells. */
template <class Found>
__device__ __forceinline__ void nlist_i_each_image(const nlist &list, const nlist_i_job &job,
                                                   const nlist_i_systems &systems,
                                                   const int64_t *uid, int32_t place, Found found)
{
    nlist_i_record const own = systems.record[place];
    const nlist_i_frame &frame = systems.frame[own.system];
    const nlist_desc *const desc = &list.desc;
    nlist_real const largest = nlist_i_largest(list, job.facts);
    nlist_real const widest = nlist_i_limit(desc, largest, largest);
    nlist_i_walk walk = nlist_i_walk_of(&frame, (int32_t)(systems.sorted_key[place] -
                                                          frame.first_cell));
    nlist_i_image_entry e;
    while (nlist_i_next_run(&walk)) {
        int32_t const end = systems.begin[frame.first_cell + walk.end];
        nlist_real t_run[3], t[3];
        int32_t run[3];
        for (int a = 0; a < 3; a++) run[a] = walk.image[a] + own.wrap[a];
        nlist_i_translation(&frame, run, t_run);
        for (int32_t k = systems.begin[frame.first_cell + walk.begin]; k < end; k++) {
            nlist_i_record const other = systems.record[k];
            for (int a = 0; a < 3; a++) {
                e.shift[a] = run[a] - other.wrap[a];
                t[a] = t_run[a];
            }
            if (other.wrap[0] | other.wrap[1] | other.wrap[2])
                nlist_i_translation(&frame, e.shift, t);
            e.d2 = nlist_i_offset(own.p, other.p, t, e.d);
            e.id = other.id;
            if (!(e.d2 <= widest)) continue;
            if (desc->radii &&
                !(e.d2 <= nlist_i_limit(desc, nlist_i_given_radius(desc, own.id),
                                        nlist_i_given_radius(desc, e.id))))
                continue;
            if (nlist_i_may_list_image(desc, uid, own.id, e.id, e.shift)) found(e);
        }
    }
}

/* Entries that a search for the nearest finds. */
constexpr int32_t nlist_i_batch = 8;

/* Inserts an entry among the `many` nearest so far, at most `room`. */
__device__ __forceinline__ void nlist_i_keep_image(nlist_i_image_entry *best, int32_t &many,
                                                   int32_t room, const nlist_i_image_entry &e)
{
    int32_t slot = many;
    if (many == room) {
        const nlist_i_image_entry &worst = best[room - 1];
        if (!nlist_i_nearer(e.d2, e.id, e.shift, worst.d2, worst.id, worst.shift)) return;
        slot--;
    } else many++;
    for (; slot > 0; slot--) {
        const nlist_i_image_entry &other = best[slot - 1];
        if (!nlist_i_nearer(e.d2, e.id, e.shift, other.d2, other.id, other.shift)) break;
        best[slot] = other;
    }
    best[slot] = e;
}

/* The same with desc.nearest: the nearest only, in their order. Each search finds the next 8. */
template <class Found>
__device__ __forceinline__ void nlist_i_each_listed(const nlist &list, const nlist_i_job &job,
                                                    const nlist_i_systems &systems,
                                                    const int64_t *uid, int32_t place, Found found)
{
    nlist_i_image_entry last = {}, best[nlist_i_batch];
    if (list.desc.nearest == 0) {
        nlist_i_each_image(list, job, systems, uid, place, found);
        return;
    }
    for (int32_t k = 0; k < list.desc.nearest; k += nlist_i_batch) {
        int32_t const left = list.desc.nearest - k,
                      room = left < nlist_i_batch ? left : nlist_i_batch;
        int32_t many = 0;
        nlist_i_each_image(list, job, systems, uid, place, [&](const nlist_i_image_entry &e) {
            if (k == 0 || nlist_i_nearer(last.d2, last.id, last.shift, e.d2, e.id, e.shift))
                nlist_i_keep_image(best, many, room, e);
        });
        for (int32_t i = 0; i < many; i++) found(best[i]);
        if (many < nlist_i_batch) return;
        last = best[nlist_i_batch - 1];
    }
}

struct nlist_i_box_source {
    static constexpr bool compacts = true;
    nlist_i_systems systems;
    __device__ bool begin(const nlist &list, const nlist_i_job &, int32_t turn,
                          nlist_i_query &query) const
    {
        query = nlist_i_query_of(&list.desc, systems.record[turn].id, systems.record[turn].p);
        return systems.record[turn].system >= 0;
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                         int32_t turn, const nlist_i_query &, nlist_i_pass, Found found) const
    {
        nlist_i_each_listed(list, job, systems, rows.uid, turn,
                            [&](const nlist_i_image_entry &e) { found(e.id); });
    }
};

/* Shifts, distances, offsets of a row: its entries, and the search that found them, in step. */
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_extras_kernel(__grid_constant__ const nlist_device device,
                          __grid_constant__ const nlist_i_job job,
                          __grid_constant__ const nlist_i_systems systems)
{
    const nlist &list = device.list;
    int32_t const place = nlist_i_thread();
    if (place >= job.n || nlist_i_skips(list, job.facts)) return;
    const nlist_rows &rows = list.rows[nlist_i_to(list)];
    nlist_i_record const own = systems.record[place];
    int32_t within = 0;
    if (own.id >= job.rows) return;
    nlist_each at = nlist_i_row(&rows, 0, own.id);
    if (own.system >= 0) {
        nlist_i_each_listed(list, job, systems, rows.uid, place,
                            [&](const nlist_i_image_entry &e) {
            if (!nlist_next(&at)) return; /* it did not fit */
            if (rows.shift)
                for (int a = 0; a < 3; a++) rows.shift[3 * at.entry + a] = e.shift[a];
            if (rows.distance) rows.distance[at.entry] = nlist_i_root_real(e.d2);
            if (rows.offset)
                for (int a = 0; a < 3; a++) rows.offset[3 * at.entry + a] = e.d[a];
        });
        if (rows.within)
            nlist_i_each_image(list, job, systems, rows.uid, place,
                               [&](const nlist_i_image_entry &) { within++; });
    }
    if (!rows.within) return;
    rows.within[own.id] = within;
    if (within > list.desc.nearest) atomicAdd(&job.facts->rows_cut, 1);
}

/* Exchanges two numbers. */
template <class T> __device__ __forceinline__ void nlist_i_exchange(T &a, T &b)
{
    T const c = a;
    a = b;
    b = c;
}

/* Exchanges two entries. Slots and partners are one array or the other. */
__device__ __forceinline__ void nlist_i_exchange_entries(const nlist_rows &rows, int64_t a,
                                                         int64_t b)
{
    int64_t const slots = (int64_t)rows.n * rows.width;
    nlist_i_exchange(a < slots ? rows.slot[a] : rows.partner[a - slots],
                     b < slots ? rows.slot[b] : rows.partner[b - slots]);
    if (rows.shift)
        for (int k = 0; k < 3; k++)
            nlist_i_exchange(rows.shift[3 * a + k], rows.shift[3 * b + k]);
    if (rows.distance) nlist_i_exchange(rows.distance[a], rows.distance[b]);
    if (rows.offset)
        for (int k = 0; k < 3; k++)
            nlist_i_exchange(rows.offset[3 * a + k], rows.offset[3 * b + k]);
}

/* 1 if entry a comes before entry b of a COMPACT list: by partner, then shift. */
__device__ __forceinline__ bool nlist_i_entry_before(const nlist_rows &rows, int64_t a, int64_t b)
{
    return nlist_i_nearer(0, rows.partner[a], rows.shift + 3 * a, 0, rows.partner[b],
                          rows.shift + 3 * b);
}

/* Entry k of the heap sinks below those that come after it. Its children are 2 k + 1, 2 k + 2. */
__device__ void nlist_i_sink(const nlist_rows &rows, int64_t first, int64_t k, int64_t count)
{
    for (int64_t child = 2 * k + 1; child < count; k = child, child = 2 * k + 1) {
        if (child + 1 < count && nlist_i_entry_before(rows, first + child, first + child + 1))
            child++;
        if (!nlist_i_entry_before(rows, first + k, first + child)) return;
        nlist_i_exchange_entries(rows, first + k, first + child);
    }
}

/* Heapsort: in place, and k log k steps for the longest row. */
__device__ void nlist_i_heapsort(const nlist_rows &rows, int64_t first, int64_t count)
{
    for (int64_t k = count / 2; k-- > 0;) nlist_i_sink(rows, first, k, count);
    for (int64_t last = count; last-- > 1;) {
        nlist_i_exchange_entries(rows, first, first + last);
        nlist_i_sink(rows, first, 0, last);
    }
}

/* Selection sort: few exchanges, and forward steps only, which the links of a row allow. */
__device__ void nlist_i_selection_sort(const nlist_rows &rows, nlist_each e)
{
    while (nlist_next(&e)) {
        nlist_each other = e;
        int64_t least = e.entry;
        int32_t id = e.id;
        const int32_t *shift = e.shift;
        while (nlist_next(&other)) {
            if (!nlist_i_nearer(0, other.id, other.shift, 0, id, shift)) continue;
            least = other.entry;
            id = other.id;
            shift = other.shift;
        }
        if (least != e.entry) nlist_i_exchange_entries(rows, e.entry, least);
    }
}

constexpr int nlist_i_long_row = 48; /* entries from which on a COMPACT row is sorted by heapsort */

/* desc.sorted: by partner, then shift. */
__global__ void nlist_i_sort_rows_kernel(__grid_constant__ const nlist_device device,
                                         __grid_constant__ const nlist_i_job job)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    if (i >= job.rows || nlist_i_skips(list, job.facts)) return;
    const nlist_rows &rows = list.rows[nlist_i_to(list)];
    nlist_each const e = nlist_i_row(&rows, 0, i);
    if (rows.start && e.end - e.at >= nlist_i_long_row)
        nlist_i_heapsort(rows, e.at, e.end - e.at);
    else
        nlist_i_selection_sort(rows, e);
}


/* The sort of the particles by cell; temp NULL: asks for its size. */
nlist_result nlist_i_sort_cells(nlist_cuda *gpu, const nlist_i_systems &systems, int32_t n,
                                void *temp, size_t &temp_bytes, cudaStream_t stream)
{
    int bits = 1;
    while (bits < 32 && systems.cells >> bits) bits++;
    (void)cudaGetLastError();
    return nlist_i_failed(gpu, cub::DeviceRadixSort::SortPairs(
                                   temp, temp_bytes, systems.key, systems.sorted_key, systems.id,
                                   systems.sorted_id, n, 0, bits, stream))
               ? NLIST_CUDA_ERROR
               : NLIST_OK;
}

/* Memory for the systems. */
nlist_result nlist_i_take_systems(nlist_cuda *gpu, nlist_i_systems *systems, int32_t n,
                                  size_t *temp, cudaStream_t stream)
{
    int64_t const two_keys = 2 * (int64_t)n * (int64_t)sizeof(uint32_t);
    nlist_result result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_FRAMES], systems->count,
                                            sizeof(nlist_i_frame) + sizeof(nlist_i_bounds), stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_KEYS_A], two_keys, 1, stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_KEYS_B], two_keys, 1, stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_RECORDS], n, sizeof(nlist_i_record),
                                   stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_BEGINS], systems->cells + 1,
                                   sizeof(int32_t), stream);
    if (result != NLIST_OK) return result;
    systems->frame = nlist_i_scratch<nlist_i_frame>(gpu, NLIST_I_FRAMES);
    systems->bounds = reinterpret_cast<nlist_i_bounds *>(systems->frame + systems->count);
    systems->key = nlist_i_scratch<uint32_t>(gpu, NLIST_I_KEYS_A);
    systems->sorted_key = nlist_i_scratch<uint32_t>(gpu, NLIST_I_KEYS_B);
    systems->id = reinterpret_cast<int32_t *>(systems->key + n);
    systems->sorted_id = reinterpret_cast<int32_t *>(systems->sorted_key + n);
    systems->record = nlist_i_scratch<nlist_i_record>(gpu, NLIST_I_RECORDS);
    systems->begin = nlist_i_scratch<int32_t>(gpu, NLIST_I_BEGINS);
    result = nlist_i_sort_cells(gpu, *systems, n, nullptr, *temp, stream);
    return result == NLIST_OK
               ? nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_TEMP], (int64_t)*temp, 1, stream)
               : result;
}

/* Puts the particles into cells. */
nlist_result nlist_i_fill_cells(nlist_cuda *gpu, const nlist_i_job &job,
                                const nlist_i_systems &systems, size_t temp, cudaStream_t stream)
{
    const nlist_device &device = gpu->device;
    nlist_result result = nlist_i_launch(gpu, stream, systems.count, nlist_i_block,
                                         nlist_i_frames_kernel, device, job, systems);
    if (result == NLIST_OK)
        result = nlist_i_launch(gpu, stream, job.n, nlist_i_block, nlist_i_extents_kernel, device,
                                job, systems);
    if (result == NLIST_OK)
        result = nlist_i_launch(gpu, stream, systems.count, nlist_i_block, nlist_i_cut_kernel,
                                device, job, systems);
    if (result == NLIST_OK)
        result = nlist_i_launch(gpu, stream, job.n, nlist_i_block, nlist_i_cells_kernel, device,
                                job, systems);
    if (result == NLIST_OK)
        result = nlist_i_sort_cells(gpu, systems, job.n, gpu->scratch[NLIST_I_TEMP].memory, temp,
                                    stream);
    if (result == NLIST_OK)
        result = nlist_i_launch(gpu, stream, job.n, nlist_i_block, nlist_i_records_kernel, device,
                                job, systems);
    if (result != NLIST_OK) return result;
    return nlist_i_launch(gpu, stream, systems.cells + 1, nlist_i_block, nlist_i_begins_kernel,
                          systems, job.n);
}

/* Finds the rows, then what entries have beside the partner, then sorts. */
nlist_result nlist_i_find_in_boxes(nlist_cuda *gpu, const nlist_i_job &job, nlist_i_systems systems,
                                   cudaStream_t stream)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    size_t temp = 0;
    if (job.n == 0) return nlist_i_find_rows(gpu, job, nlist_i_box_source{systems}, stream);
    systems.cells = job.n + 8 * (int64_t)systems.count;
    nlist_result result = nlist_i_take_systems(gpu, &systems, job.n, &temp, stream);
    if (result == NLIST_OK) result = nlist_i_fill_cells(gpu, job, systems, temp, stream);
    if (result == NLIST_OK)
        result = nlist_i_find_rows(gpu, job, nlist_i_box_source{systems}, stream);
    if (result != NLIST_OK) return result;
    if (desc->shifts || desc->distances || desc->offsets || desc->nearest)
        result = nlist_i_launch(gpu, stream, job.n, nlist_i_search_block, nlist_i_extras_kernel,
                                gpu->device, job, systems);
    if (result != NLIST_OK || !desc->sorted || desc->nearest > 0) return result;
    return nlist_i_launch(gpu, stream, job.rows, nlist_i_block, nlist_i_sort_rows_kernel,
                          gpu->device, job);
}

/* A build of one box or of many. */
nlist_result nlist_i_build_in_boxes(nlist_cuda *gpu, const nlist_desc *desc,
                                    const nlist_i_systems &systems, const nlist_real *d_pos,
                                    size_t stride, int32_t n, cudaStream_t stream)
{
    nlist_i_job job;
    nlist before;
    nlist_desc const resolved = nlist_i_box_desc(desc);
    nlist_result result = nlist_i_cuda_begin(gpu, &resolved, 0, &before, stream);
    if (result == NLIST_OK) result = nlist_i_check_box_desc(&gpu->device.list.desc);
    if (result == NLIST_OK) result = nlist_i_cuda_prepare(gpu, &job, d_pos, stride, n);
    if (result == NLIST_OK && n + 8 * (int64_t)systems.count > NLIST_I_INT_MAX)
        result = NLIST_TOO_MANY;
    if (result != NLIST_OK) return nlist_i_refuse(gpu, before, result);
    gpu->device.list.boxed = 1;
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) { return nlist_i_find_in_boxes(gpu, with, systems, stream); },
        nlist_i_particle_carry{}, stream);
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_build_box(nlist_cuda *gpu, const nlist_desc *desc,
                                            const nlist_box *box, const nlist_real *d_pos,
                                            size_t stride, int32_t n, struct CUstream_st *stream)
{
    nlist_i_systems systems = {};
    nlist_i_frame frame;
    if (!gpu || !desc || !box || (desc->dim != 0 && desc->dim != 2 && desc->dim != 3))
        return !gpu || !desc || !box ? NLIST_BAD_ARGUMENT : NLIST_BAD_DIM;
    if (!nlist_i_frame_of(&frame, box, desc->dim == 2 ? 2 : 3)) return NLIST_BAD_BOX;
    systems.one = *box;
    systems.count = 1;
    return nlist_i_build_in_boxes(gpu, desc, systems, d_pos, stride, n, stream);
}

NLIST_API nlist_result nlist_cuda_build_boxes(nlist_cuda *gpu, const nlist_desc *desc,
                                              const nlist_box *d_boxes, const int32_t *d_starts,
                                              int32_t systems, const nlist_real *d_pos,
                                              size_t stride, int32_t n,
                                              struct CUstream_st *stream)
{
    nlist_i_systems all = {};
    if (!gpu || !desc || systems < 0 || (systems > 0 && (!d_boxes || !d_starts)) ||
        (systems == 0 && n > 0))
        return NLIST_BAD_ARGUMENT;
    all.boxes = d_boxes;
    all.starts = d_starts;
    all.count = systems;
    return nlist_i_build_in_boxes(gpu, desc, all, d_pos, stride, n, stream);
}
