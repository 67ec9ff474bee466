/* nearest.h - lbvh_nearest for many points: in an order in which near ones follow each other.
   SPDX-License-Identifier: MIT OR Unlicense

   The points are processed by the cells of the tree's lattice, as lbvh_cuda_nearest does: a search
   then finds in the cache what the one before has read. The rows are the same as in any other
   order. (To begin with a reach from the row before saves 3 % of the instructions only.) */

#include <math.h>
#include <stdlib.h>

/* From so many points on they are sorted; a piece has as many at least. */
enum { NEARFIELD_I_SORTED = 64, NEARFIELD_I_DIGIT = 11, NEARFIELD_I_PIECES = 1024 };

/* A search for the rows of many points. */
typedef struct nearfield_i_near {
    const lbvh *tree;
    const lbvh_real *points;
    size_t stride;
    int32_t m, k;
    lbvh_real reach;
    int32_t *ids, *found;
    lbvh_real *distances2;
    uint64_t *order;        /* [m] the lower 32 bits number the points, or NULL: as they are */
    int32_t pieces;
    lbvh_result *result;    /* [pieces] */
} nearfield_i_near;

static const lbvh_real *nearfield_i_point(const nearfield_i_near *near, int32_t q)
{
    const char *at = (const char *)near->points + near->stride * (size_t)q;
    return (const lbvh_real *)(const void *)at;
}

/* Cell and number of each point, in one word: the upper 32 bits of the Morton code, of which there
   are at most 63. */
static void nearfield_i_near_keys(const nearfield_i_near *near, uint64_t *key, int32_t m)
{
    int const dim = near->tree->desc.dim, bits = lbvh_i_code_bits(&near->tree->desc);
    int const drop = bits > 32 ? bits - 32 : 0;
    int32_t q;
    for (q = 0; q < m; q++) {
        const lbvh_real *p = nearfield_i_point(near, q);
        lbvh_real const at[3] = {p[0], p[1], dim == 3 ? p[2] : 0};
        uint64_t const code = lbvh_i_code(&near->tree->lattice, dim, near->tree->desc.bits, at, at);
        key[q] = code >> drop << 32 | (uint64_t)(uint32_t)q;
    }
}

/* Sorts m keys by the digit at a bit. */
static void nearfield_i_near_pass(const uint64_t *key, uint64_t *out, int32_t m, int bit)
{
    uint64_t const last = ((uint64_t)1 << NEARFIELD_I_DIGIT) - 1;
    int32_t begin[((size_t)1 << NEARFIELD_I_DIGIT) + 1] = {0}, q;
    uint64_t digit;
    for (q = 0; q < m; q++) begin[(key[q] >> bit & last) + 1]++;
    for (digit = 0; digit < last; digit++) begin[digit + 1] += begin[digit];
    for (q = 0; q < m; q++) out[begin[key[q] >> bit & last]++] = key[q];
}

/* Keys in the order of cells: an array to be freed. NULL: there is no memory, or few points. */
static uint64_t *nearfield_i_near_order(const nearfield_i_near *near, int32_t m)
{
    uint64_t *key, *other, *had;
    int bit;
    if (m < NEARFIELD_I_SORTED) return NULL;
    key = (uint64_t *)malloc((size_t)m * sizeof *key);
    other = (uint64_t *)malloc((size_t)m * sizeof *key);
    if (key && other) {
        nearfield_i_near_keys(near, key, m);
        for (bit = 32; bit < 64; bit += NEARFIELD_I_DIGIT) {
            nearfield_i_near_pass(key, other, m, bit);
            had = key;
            key = other;
            other = had;
        }
    } else {
        free(key);
        key = NULL;
    }
    free(other);
    return key;
}

/* The row of point q; unused entries are -1 and infinity. */
static lbvh_result nearfield_i_near_row(const nearfield_i_near *near, int32_t q)
{
    size_t const first = (size_t)near->k * (size_t)q;
    int32_t *id = near->ids + first, e;
    lbvh_real *d2 = near->distances2 + first;
    lbvh_result const result = lbvh_nearest(near->tree, nearfield_i_point(near, q), near->k,
                                            near->reach, NULL, NULL, id, d2, &near->found[q]);
    if (result != LBVH_OK) return result;
    for (e = near->found[q]; e < near->k; e++) id[e] = -1, d2[e] = (lbvh_real)HUGE_VAL;
    return LBVH_OK;
}

/* The rows of a piece: a task of lbvh_parallel. */
static void nearfield_i_near_piece(void *context, int32_t piece)
{
    const nearfield_i_near *near = (const nearfield_i_near *)context;
    int32_t turn = (int32_t)((int64_t)near->m * piece / near->pieces);
    int32_t const end = (int32_t)((int64_t)near->m * (piece + 1) / near->pieces);
    lbvh_result result = LBVH_OK;
    for (; turn < end && result == LBVH_OK; turn++)
        result = nearfield_i_near_row(near, near->order ? (int32_t)(uint32_t)near->order[turn]
                                                        : turn);
    near->result[piece] = result;
}

/* All rows, in tasks where there are many. */
static lbvh_result nearfield_i_near_rows(nearfield_i_near *near)
{
    const lbvh_parallel *parallel = &near->tree->desc.parallel;
    lbvh_result result[NEARFIELD_I_PIECES];
    int32_t piece;
    near->pieces = 1;
    if (parallel->run && near->tree->built)
        while (near->pieces < parallel->tasks && near->pieces < NEARFIELD_I_PIECES &&
               near->m / (near->pieces + 1) >= NEARFIELD_I_SORTED)
            near->pieces++;
    near->result = result;
    for (piece = 0; piece < near->pieces; piece++) result[piece] = LBVH_NOT_RUN;
    if (near->pieces > 1)
        parallel->run(nearfield_i_near_piece, near, near->pieces, parallel->user);
    else nearfield_i_near_piece(near, 0);
    for (piece = 0; piece < near->pieces; piece++)
        if (result[piece] != LBVH_OK) return result[piece];
    return LBVH_OK;
}
