/* plain_history_gpu.h - history in place on the GPU, as the source has it (004, section 5.5): the
   list of plain_history.h, whose five steps are here kernels and a radix sort by a.
   SPDX-License-Identifier: MIT OR Unlicense

   A part of bench_nlist.cu: included in its namespace. */

#ifndef PLAIN_HISTORY_GPU_H
#define PLAIN_HISTORY_GPU_H

/* What kernels take: contacts (a, b), a < b, those of a from start[a] to start[a + 1]. */
struct contacts_in_place {
    int32_t n, capacity;
    int32_t *a, *b, *start;
    float4 *kept;
    uint8_t *valid;
    int32_t *count;             /* [2] contacts; while pairs are found, also those that do not
                                   fit; and the most that these have been */
};

/* find, append */
struct found_in_place {
    contacts_in_place list;
    __device__ void operator()(const ugrid_contact &c) const
    {
        int32_t const a = c.i < c.j ? c.i : c.j, b = c.i < c.j ? c.j : c.i, end = list.start[a + 1];
        int32_t k = list.start[a];
        while (k < end && list.b[k] != b) k++;
        if (k == end) {
            k = atomicAdd(list.count, 1);
            if (k >= list.capacity) return;
            list.a[k] = a;
            list.b[k] = b;
            list.kept[k] = make_float4(0, 0, 0, 0);
        }
        list.valid[k] = 1;
    }
};

/* drop: what is not valid gets an a behind all others. */
__global__ void in_place_drop_kernel(__grid_constant__ const contacts_in_place list, int32_t used,
                                     int32_t *order)
{
    int64_t const k = thread_index();
    if (k == 0 && list.count[0] > list.count[1]) list.count[1] = list.count[0];
    if (k >= used) return;
    if (k >= *list.count || !list.valid[k]) list.a[k] = list.n;
    order[k] = static_cast<int32_t>(k);
}

/* After the sort: everything of a contact goes along. */
__global__ void in_place_gather_kernel(__grid_constant__ const contacts_in_place from,
                                       __grid_constant__ const contacts_in_place to, int32_t used,
                                       const int32_t *order)
{
    int64_t const k = thread_index();
    if (k >= used || to.a[k] == to.n) return;
    to.b[k] = from.b[order[k]];
    to.kept[k] = from.kept[order[k]];
}

/* Where a changes, rows begin; start[n]: the end of the last, which cuts what was dropped. */
__global__ void in_place_start_kernel(__grid_constant__ const contacts_in_place list, int32_t used)
{
    int64_t const k = thread_index();
    if (k > used) return;
    int32_t const before = k > 0 ? list.a[k - 1] : -1, own = k < used ? list.a[k] : list.n;
    for (int32_t a = before + 1; a <= own; a++) list.start[a] = static_cast<int32_t>(k);
    if (own == list.n && before < list.n) *list.count = static_cast<int32_t>(k);
}

__global__ void in_place_sign_kernel(__grid_constant__ const contacts_in_place list)
{
    int64_t const k = thread_index();
    if (k < *list.count) sign_op{}(list.a[k], list.b[k], &list.kept[k], k);
}

__global__ void in_place_verify_kernel(__grid_constant__ const contacts_in_place list,
                                       __grid_constant__ const verify_op verify)
{
    int64_t const k = thread_index();
    if (k < *list.count) verify(list.a[k], list.b[k], &list.kept[k], k);
}

struct history_in_place {
    int32_t n, capacity, used;  /* used: so many places are sorted */
    device_array<int32_t> a, b, a_spare, b_spare, order, order_spare, start, count;
    device_array<float4> kept, kept_spare;
    device_array<uint8_t> valid, temp;
    std::size_t temp_bytes;

    history_in_place(int32_t spheres, int32_t room)
        : n(spheres), capacity(room), used(room), a(room), b(room), a_spare(room), b_spare(room),
          order(room), order_spare(room), start(static_cast<std::size_t>(n) + 1), count(2),
          kept(room), kept_spare(room), valid(room), temp(sort(nullptr)), temp_bytes(temp.count)
    {
        must(cudaMemsetAsync(start.data, 0, start.count * sizeof(int32_t), stream));
        must(cudaMemsetAsync(count.data, 0, 2 * sizeof(int32_t), stream));
    }
    /* No more places are sorted than a build has needed. */
    void fit()
    {
        used = count.download()[1];
        bench_check(used <= capacity, "history in place: room");
        used = std::min(used, capacity);
    }
    contacts_in_place list() const
    {
        return {n, capacity, a.data, b.data, start.data, kept.data, valid.data, count.data};
    }
    contacts_in_place spare() const
    {
        return {n, capacity, a_spare.data, b_spare.data, start.data, kept_spare.data, valid.data,
                count.data};
    }
    /* By as many bits as a has. Without memory: the bytes that it takes. */
    std::size_t sort(void *memory)
    {
        std::size_t bytes = memory ? temp_bytes : 0;
        int bits = 1;
        while (n >> bits) bits++;
        must(cub::DeviceRadixSort::SortPairs(memory, bytes, a.data, a_spare.data, order.data,
                                             order_spare.data, used, 0, bits, stream));
        return bytes;
    }
    void build(ugrid_cuda *grid, float radius)
    {
        must(cudaMemsetAsync(valid.data, 0, static_cast<std::size_t>(used), stream)); /* flag */
        must(ugrid_cuda_each(grid, radius, UGRID_HALF, found_in_place{list()}, stream));
        launch(used, in_place_drop_kernel, list(), used, order.data);
        sort(temp.data);
        launch(used, in_place_gather_kernel, list(), spare(), used, order_spare.data);
        std::swap(a.data, a_spare.data);
        std::swap(b.data, b_spare.data);
        std::swap(kept.data, kept_spare.data);
        launch(int64_t{used} + 1, in_place_start_kernel, list(), used);
    }
};

#endif /* PLAIN_HISTORY_GPU_H */
