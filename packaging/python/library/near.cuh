/* near.cuh - points of a GPU around others, and the nearest of each: tried each with each.
   SPDX-License-Identifier: MIT OR Unlicense

   For nearfield.torch, beside few.cuh: systems of few points, where this takes less time than a
   tree of each; larger systems go through trees of lbvh_cuda (_torch_cuda.py). Distances, their
   rounding and the order of equal ones are those of trees.h. */

namespace {

struct nearfield_i_near {
    nlist_desc desc;
    const nlist_real *pos;      /* [n] points of 3 numbers */
    const int32_t *starts;      /* [systems + 1] */
    const nlist_box *boxes;     /* [systems], or NULL: nothing repeats */
    int32_t systems, rows, most;
    const nlist_real *query;    /* [rows] points of 3 numbers */
    const int32_t *row_starts;  /* [systems + 1] */
    const int32_t *row;         /* nearest: [rows] the points whose rows are wanted, NULL: all */
};

/* The system of which starts[s] <= i < starts[s + 1]. */
__device__ __forceinline__ int32_t nearfield_i_system(const int32_t *starts, int32_t systems,
                                                      int32_t i)
{
    int32_t low = 0, high = systems;
    while (high - low > 1) {
        int32_t const middle = low + (high - low) / 2;
        if (starts[middle] <= i) low = middle;
        else high = middle;
    }
    return low;
}

/* A warp for each query. Without `to_i` and `to_j`: begin[i] becomes the length of its row. A row
   ends after `most` entries (0: any number), which are those of the lowest ids. */
__global__ void __launch_bounds__(nearfield_i_few_block)
    nearfield_i_queries_kernel(__grid_constant__ const nearfield_i_near near, int64_t *begin,
                               int64_t *to_i, int64_t *to_j)
{
    int64_t const i = nlist_i_global_thread() / 32;
    int32_t const lane = threadIdx.x % 32;
    nlist_real const none[3] = {0, 0, 0};
    nlist_real p[3];
    if (i >= near.rows) return; /* all lanes of the warp */
    int32_t const s = nearfield_i_system(near.row_starts, near.systems, (int32_t)i);
    int32_t const to = near.starts[s + 1];
    int64_t found = 0;
    nlist_i_load(near.query, 3 * sizeof(nlist_real), 3, (int32_t)i, p);
    for (int32_t first = near.starts[s]; first < to; first += 32) {
        int32_t const j = first + lane;
        nlist_real q[3], d[3];
        nlist_i_load(near.pos, 3 * sizeof(nlist_real), 3, j < to ? j : first, q);
        bool const listed = j < to &&
                            nlist_i_offset(p, q, none, d) <= nlist_i_limit(&near.desc, 0, 0);
        uint32_t const lanes = __ballot_sync(0xFFFFFFFFu, listed);
        int64_t const entry = found + __popc(lanes & ((1u << lane) - 1));
        if (to_i && listed && (near.most == 0 || entry < near.most)) {
            to_i[begin[i] + entry] = i;
            to_j[begin[i] + entry] = j;
        }
        found += __popc(lanes);
        if (near.most > 0 && found >= near.most) break; /* all lanes alike */
    }
    if (near.most > 0 && found > near.most) found = near.most;
    if (!to_i && lane == 0) begin[i] = found;
}

/* The k nearest of a row so far: a heap, the last of them first. */
struct nearfield_i_kept {
    nlist_real *d2;
    int32_t *id, count, most;

    __device__ bool before(nlist_real a2, int32_t a, nlist_real b2, int32_t b) const
    {
        return a2 != b2 ? a2 < b2 : a < b;
    }
    /* (x2, x) sinks from place k of a heap of `size` entries. */
    __device__ void sink(int32_t k, int32_t size, nlist_real x2, int32_t x)
    {
        for (int64_t child = 2 * (int64_t)k + 1; child < size; child = 2 * (int64_t)k + 1) {
            if (child + 1 < size && before(d2[child], id[child], d2[child + 1], id[child + 1]))
                child++;
            if (!before(x2, x, d2[child], id[child])) break;
            d2[k] = d2[child];
            id[k] = id[child];
            k = (int32_t)child;
        }
        d2[k] = x2;
        id[k] = x;
    }
    __device__ void heap()
    {
        for (int32_t k = count / 2; k-- > 0;) sink(k, count, d2[k], id[k]);
    }
    __device__ void add(nlist_real x2, int32_t x)
    {
        if (count == most) {
            if (before(x2, x, d2[0], id[0])) sink(0, count, x2, x);
            return;
        }
        d2[count] = x2;
        id[count++] = x;
        if (count == most) heap();
    }
    /* Ascending; places without an entry get id -1. */
    __device__ void end()
    {
        if (count < most) heap();
        for (int32_t last = count; last-- > 1;) {
            nlist_real const x2 = d2[last];
            int32_t const x = id[last];
            d2[last] = d2[0];
            id[last] = id[0];
            sink(0, last, x2, x);
        }
        for (int32_t k = count; k < most; k++) id[k] = -1;
    }
};

/* All images of the points of a system up to `range` periods from point i. */
__device__ void nearfield_i_add_images(const nearfield_i_near &near, const nlist_i_frame &frame,
                                       int32_t i, const int32_t range[3], nearfield_i_kept &kept)
{
    nlist_real const limit = nlist_i_limit(&near.desc, 0, 0);
    nlist_real p[3], q[3], t[3], d[3];
    double at[3];
    int32_t own[3], wrap[3], s[3], shift[3];
    nlist_i_load(near.pos, 3 * sizeof(nlist_real), 3, i, p);
    nearfield_i_into_cell(&frame, p, at, own);
    for (int32_t j = frame.first; j < frame.first + frame.n; j++) {
        nlist_i_load(near.pos, 3 * sizeof(nlist_real), 3, j, q);
        nearfield_i_into_cell(&frame, q, at, wrap);
        for (s[0] = -range[0]; s[0] <= range[0]; s[0]++)
            for (s[1] = -range[1]; s[1] <= range[1]; s[1]++)
                for (s[2] = -range[2]; s[2] <= range[2]; s[2]++) {
                    for (int b = 0; b < 3; b++)
                        shift[b] = own[b] - wrap[b] + s[0] * frame.basis[0][b] +
                                   s[1] * frame.basis[1][b] + s[2] * frame.basis[2][b];
                    if (i == j && !(shift[0] | shift[1] | shift[2])) continue;
                    nlist_i_translation(&frame, shift, t);
                    nlist_real const d2 = nlist_i_offset(p, q, t, d);
                    if (d2 <= limit) kept.add(d2, j);
                }
    }
}

/* The square of how far point i is from the box around all points, along the axes that are not
   periodic: its own images are as near as 0. */
__device__ int nearfield_i_find_frame(const nearfield_i_near &near, int32_t i,
                                      nlist_i_frame *frame)
{
    nlist_box open = {};
    int32_t const s = nearfield_i_system(near.starts, near.systems, i);
    const nlist_box *box = near.boxes ? &near.boxes[s] : &open;
    frame->first = near.starts[s];
    frame->n = near.starts[s + 1] - frame->first;
    return nlist_i_frame_of(frame, box, 3);
}

/* A thread for the row of each point. In a box that repeats it looks further and further, until
   what it keeps is nearer than all that it has not seen. (The point's own images are in the row:
   that ends.) */
__global__ void __launch_bounds__(nearfield_i_few_block)
    nearfield_i_nearest_kernel(__grid_constant__ const nearfield_i_near near, int32_t *ids,
                               nlist_real *distances2)
{
    int64_t const row = nlist_i_global_thread();
    if (row >= near.rows) return;
    int32_t const i = near.row ? near.row[row] : (int32_t)row;
    nearfield_i_kept kept = {distances2 + row * near.most, ids + row * near.most, 0, near.most};
    nlist_i_frame frame;
    double lateral = 0;
    double const cutoff = (double)near.desc.radius;
    bool repeats = nearfield_i_find_frame(near, i, &frame) != 0;
    repeats = repeats && (frame.periodic[0] | frame.periodic[1] | frame.periodic[2]);
    for (int a = 0; a < 3; a++)
        if (repeats && frame.periodic[a] && !(lateral > 0 && lateral * frame.thick[a] < 0.5))
            lateral = 0.5 / frame.thick[a];
    for (;; lateral *= 2) {
        int32_t range[3];
        if (repeats && lateral > cutoff) lateral = cutoff;
        for (int a = 0; a < 3; a++)
            range[a] = repeats && frame.periodic[a]
                           ? (int32_t)(lateral * frame.thick[a] * 1.000001 + 1e-6) + 1 : 0;
        kept.count = 0;
        nearfield_i_add_images(near, frame, i, range, kept);
        if (!repeats || lateral >= cutoff) break;
        if (kept.count == kept.most && (double)kept.d2[0] <= lateral * lateral) break;
    }
    kept.end();
}

nearfield_i_near nearfield_i_near_of(const nlist_real *d_pos, const int32_t *d_starts,
                                     int32_t systems, nlist_real cutoff, int32_t most)
{
    nearfield_i_near near = {};
    near.desc.dim = 3;
    near.desc.radius = nearfield_i_below(cutoff);
    near.pos = d_pos;
    near.starts = d_starts;
    near.systems = systems;
    near.most = most;
    return near;
}

} // namespace

extern "C" {

/* For each of m queries the points nearer than (<) the cutoff, in the system of the same number;
   most > 0: at most so many, those of the lowest ids. Without d_i and d_j: d_begin [m] gets their
   numbers; else d_begin says where each row begins in d_i and d_j. Waits for nothing. */
NEARFIELD_API nlist_result nearfield_cuda_queries(const nlist_real *d_pos, const int32_t *d_starts,
                                                  const nlist_real *d_query,
                                                  const int32_t *d_query_starts, int32_t m,
                                                  int32_t systems, nlist_real cutoff, int32_t most,
                                                  int64_t *d_begin, int64_t *d_i, int64_t *d_j,
                                                  cudaStream_t stream)
{
    nearfield_i_near near = nearfield_i_near_of(d_pos, d_starts, systems, cutoff, most);
    nlist_real const limit = nlist_i_limit(&near.desc, 0, 0);
    near.query = d_query;
    near.row_starts = d_query_starts;
    near.rows = m;
    if (!(near.desc.radius > 0) || !(limit >= NLIST_I_REAL_MIN) || !nlist_i_finite(limit))
        return NLIST_BAD_RADIUS;
    return nearfield_i_launch_rows(stream, m, nearfield_i_queries_kernel, near, d_begin, d_i, d_j);
}

/* The k nearest of points d_rows [rows] (NULL: of points 0 .. rows - 1) that are nearer than the
   cutoff, which may be infinite: ids, -1 where there is none, and squared distances, [rows * k].
   d_boxes: [systems], or NULL. Waits for nothing. */
NEARFIELD_API nlist_result nearfield_cuda_nearest(const nlist_real *d_pos,
                                                  const nlist_box *d_boxes,
                                                  const int32_t *d_starts, int32_t systems,
                                                  const int32_t *d_rows, int32_t rows, int32_t k,
                                                  nlist_real cutoff, int32_t *d_ids,
                                                  nlist_real *d_distances2, cudaStream_t stream)
{
    nearfield_i_near near = nearfield_i_near_of(d_pos, d_starts, systems, cutoff, k);
    near.boxes = d_boxes;
    near.row = d_rows;
    near.rows = rows;
    if (!(cutoff > 0)) return NLIST_BAD_RADIUS;
    return nearfield_i_launch(stream,
                              (rows + (int64_t)nearfield_i_few_block - 1) / nearfield_i_few_block,
                              nearfield_i_few_block, nearfield_i_nearest_kernel, near, d_ids,
                              d_distances2);
}

} // extern "C"
