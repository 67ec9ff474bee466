/* jax.h - the search as a custom call of XLA on the CPU, for nearfield.jax.
   SPDX-License-Identifier: MIT OR Unlicense

   The structs are those of xla/ffi/api/c_api.h of OpenXLA (jax.ffi.include_dir() has it), as far as
   they are read here: the package is built without jaxlib. tests/python/jax_checks.py compares the
   two. XLA only appends to structs while the major version is 0, which the first call asks for.

   nearfield_jax_pairs (float, and for doubles nearfield_f64_jax_pairs)
       arguments   positions [..., n, 3], cell [..., 3, 3] of the real type, pbc [..., 3] of int32
       results     i [..., capacity], j [..., capacity], S [..., capacity, 3], count [...], int32
       attributes  cutoff, limit (bytes that a search may take): double; half, self, sorted: int32
   The leading axes are systems, as vmap makes them. From `count` on i and j are n, and S is 0; all
   are where there are more than `capacity` pairs. */

#include <stdio.h>

enum { NEARFIELD_I_XLA_EXECUTE = 3, NEARFIELD_I_XLA_METADATA = 1, NEARFIELD_I_XLA_INVALID = 3 };

typedef struct nearfield_i_xla_version {
    size_t struct_size;
    void *extension;
    int major, minor;
} nearfield_i_xla_version;

typedef struct nearfield_i_xla_metadata {
    size_t struct_size;
    nearfield_i_xla_version version;
    uint32_t traits;
} nearfield_i_xla_metadata;

typedef struct nearfield_i_xla_extension {
    size_t struct_size;
    int type;
    struct nearfield_i_xla_extension *next;
    nearfield_i_xla_metadata *metadata;         /* with the type of metadata */
} nearfield_i_xla_extension;

typedef struct nearfield_i_xla_error {
    size_t struct_size;
    void *extension;
    const char *message;
    int code;
} nearfield_i_xla_error;

typedef struct nearfield_i_xla_api {
    size_t struct_size;
    void *extension;
    nearfield_i_xla_version version;
    const void *internal;
    void *(*error)(nearfield_i_xla_error *what);
} nearfield_i_xla_api;

typedef struct nearfield_i_xla_buffer {
    size_t struct_size;
    void *extension;
    int type;
    void *data;
    int64_t axes;
    int64_t *shape;
} nearfield_i_xla_buffer;

typedef struct nearfield_i_xla_buffers {
    size_t struct_size;
    void *extension;
    int64_t count;
    int *types;
    nearfield_i_xla_buffer **of;
} nearfield_i_xla_buffers;

typedef struct nearfield_i_xla_text {
    const char *at;
    size_t length;
} nearfield_i_xla_text;

typedef struct nearfield_i_xla_scalar {
    int type;
    const void *value;
} nearfield_i_xla_scalar;

typedef struct nearfield_i_xla_attributes {
    size_t struct_size;
    void *extension;
    int64_t count;
    int *types;
    nearfield_i_xla_text **names;
    nearfield_i_xla_scalar **of;
} nearfield_i_xla_attributes;

typedef struct nearfield_i_xla_call {
    size_t struct_size;
    nearfield_i_xla_extension *extension;
    const nearfield_i_xla_api *api;
    void *context;
    int stage;
    nearfield_i_xla_buffers arguments, results;
    nearfield_i_xla_attributes attributes;
} nearfield_i_xla_call;

#ifdef NEARFIELD_IMPLEMENTATION

/* The value of an attribute; NULL: there is none of that name. */
static const void *nearfield_i_attribute(const nearfield_i_xla_call *call, const char *name)
{
    int64_t k;
    for (k = 0; k < call->attributes.count; k++) {
        const nearfield_i_xla_text *text = call->attributes.names[k];
        if (text->length == strlen(name) && memcmp(text->at, name, text->length) == 0)
            return call->attributes.of[k]->value;
    }
    return NULL;
}

static int32_t nearfield_i_flag(const nearfield_i_xla_call *call, const char *name)
{
    const void *value = nearfield_i_attribute(call, name);
    return value && *(const int32_t *)value != 0;
}

static double nearfield_i_number(const nearfield_i_xla_call *call, const char *name)
{
    const void *value = nearfield_i_attribute(call, name);
    return value ? *(const double *)value : 0;
}

/* ---- a search that one call leaves to the next ---- */

static nearfield_search *nearfield_i_resting;

static nearfield_search *nearfield_i_swap(nearfield_search *search)
{
#ifdef _MSC_VER
    return (nearfield_search *)_InterlockedExchangePointer((void *volatile *)&nearfield_i_resting,
                                                           search);
#else
    return __atomic_exchange_n(&nearfield_i_resting, search, __ATOMIC_ACQ_REL);
#endif
}

static nearfield_search *nearfield_i_wake(void)
{
    nearfield_search *search = nearfield_i_swap(NULL);
    return search ? search : nearfield_search_new();
}

static void nearfield_i_rest(nearfield_search *search)
{
    nearfield_search_end(search, (int64_t)64 << 20);
    nearfield_search_free(nearfield_i_swap(search));
}

/* ---- one system ---- */

typedef struct nearfield_i_padded {
    int32_t *i, *j, *shift, *count;
    int64_t capacity;
} nearfield_i_padded;

/* Entries from `first` on that are none. */
static void nearfield_i_pad(const nearfield_i_padded *to, int64_t first, int32_t n)
{
    int64_t e;
    for (e = first; e < to->capacity; e++) to->i[e] = to->j[e] = n;
    memset(to->shift + 3 * first, 0, 3 * sizeof(int32_t) * (size_t)(to->capacity - first));
}

/* What the search found, with room for all of it. Returns 0 if there is no memory. */
static int nearfield_i_write_padded(nearfield_search *search, const nearfield_i_padded *to)
{
    int64_t const m = search->count;
    int64_t *wide = (int64_t *)nearfield_i_pages(2 * sizeof(int64_t) * (size_t)m + 1);
    int64_t e;
    if (!wide) return 0;
    nearfield_search_copy(search, wide, wide + m, to->shift, NULL, NULL);
    for (e = 0; e < m; e++) {
        to->i[e] = (int32_t)wide[e];
        to->j[e] = (int32_t)wide[m + e];
    }
    free(wide);
    return 1;
}

/* The pairs of the n points and the box that `search` has. */
static nlist_result nearfield_i_find_padded(nearfield_search *search, int32_t n,
                                            const nearfield_i_padded *to)
{
    nlist_result result = NLIST_OK;
    search->count = 0;
    if (n > 0 && search->cutoff > 0) result = nearfield_search_run(search);
    *to->count = 0;
    nearfield_i_pad(to, 0, n);
    if (result != NLIST_OK) return result;
    *to->count = search->count > INT32_MAX ? INT32_MAX : (int32_t)search->count;
    if (search->count == 0 || search->count > to->capacity) return NLIST_OK;
    return nearfield_i_write_padded(search, to) ? NLIST_OK : NLIST_OUT_OF_MEMORY;
}

/* ---- all systems ---- */

static void nearfield_i_set_box(nlist_box *box, const nlist_real *cell, const int32_t *pbc)
{
    memcpy(box->cell, cell, sizeof box->cell);
    memcpy(box->periodic, pbc, sizeof box->periodic);
}

/* An error of XLA. */
static void *nearfield_i_say(const nearfield_i_xla_call *call, nlist_result result, int64_t system,
                             int64_t row)
{
    nearfield_i_xla_error what;
    char text[512];
    if (result == NLIST_NOT_FINITE)
        (void)snprintf(text, sizeof text, "nearfield: positions: row %lld of system %lld is not "
                       "finite", (long long)row, (long long)system);
    else
        (void)snprintf(text, sizeof text, "nearfield: %s [system %lld]", nlist_result_text(result),
                       (long long)system);
    what.struct_size = sizeof what;
    what.extension = NULL;
    what.message = text;
    what.code = NEARFIELD_I_XLA_INVALID;
    return call->api->error(&what);
}

static void *nearfield_i_each_system(const nearfield_i_xla_call *call, nearfield_search *search)
{
    nearfield_i_xla_buffer *const *given = call->arguments.of, *const *made = call->results.of;
    int64_t const *shape = given[0]->shape + given[0]->axes - 2;
    int32_t const n = (int32_t)shape[0];
    nearfield_i_padded to;
    int32_t starts[2] = {0, 0};
    nlist_box box;
    int64_t systems = 1, s;
    for (s = 0; s < given[0]->axes - 2; s++) systems *= given[0]->shape[s];
    to.capacity = made[0]->shape[made[0]->axes - 1];
    starts[1] = n;
    search->boxes = &box;
    search->starts = starts;
    search->systems = 1;
    search->stride = 3 * (int64_t)sizeof(nlist_real);
    search->cutoff = (nlist_real)nearfield_i_number(call, "cutoff");
    search->half = nearfield_i_flag(call, "half");
    search->self = nearfield_i_flag(call, "self");
    search->sorted = nearfield_i_flag(call, "sorted");
    search->limit = (int64_t)nearfield_i_number(call, "limit");
    memset(&box, 0, sizeof box);
    for (s = 0; s < systems; s++) {
        nlist_result result;
        search->pos = (const nlist_real *)given[0]->data + 3 * (int64_t)n * s;
        nearfield_i_set_box(&box, (const nlist_real *)given[1]->data + 9 * s,
                            (const int32_t *)given[2]->data + 3 * s);
        to.i = (int32_t *)made[0]->data + to.capacity * s;
        to.j = (int32_t *)made[1]->data + to.capacity * s;
        to.shift = (int32_t *)made[2]->data + 3 * to.capacity * s;
        to.count = (int32_t *)made[3]->data + s;
        result = nearfield_i_find_padded(search, n, &to);
        if (result != NLIST_OK) return nearfield_i_say(call, result, s, search->bad_id);
    }
    return NULL;
}

/* The handler: XLA asks for its version first. Returns NULL, or an error. */
NEARFIELD_API void *nearfield_jax_pairs(const nearfield_i_xla_call *call)
{
    const nearfield_i_xla_extension *asked = call->extension;
    nearfield_search *search;
    void *error;
    if (asked && asked->type == NEARFIELD_I_XLA_METADATA) {
        asked->metadata->version.major = 0;
        asked->metadata->version.minor = 1;
        asked->metadata->traits = 0;
        return NULL;
    }
    if (call->stage != NEARFIELD_I_XLA_EXECUTE) return NULL;
    search = nearfield_i_wake();
    if (!search) return nearfield_i_say(call, NLIST_OUT_OF_MEMORY, -1, -1);
    error = nearfield_i_each_system(call, search);
    nearfield_i_rest(search);
    return error;
}

#endif
