/* drum_save.h - a run of the drum that another one goes on with: --save FILE, --load FILE.
   SPDX-License-Identifier: MIT OR Unlicense

   The file holds what a step takes from the step before: spheres, both lists with the history of
   their contacts, and the number of the step; and, to compare, the numbers of the set-up. Serial
   program and GPU read each other's files. Machines must have the same order of bytes.

   >>file     bytes with a checksum
   >>setup    is it the same drum?
   >>save, >>load
   >>copies   a long drum of copies of a short one */

#ifndef DRUM_SAVE_H
#define DRUM_SAVE_H

#include "drum.h"

/* Where a run begins. */
typedef struct drum_saved {
    drum_state state;
    int64_t step;
    /* pairs and triangles as nlist_save wrote them; NULL: the run begins with empty lists */
    unsigned char *list[2];
    int64_t bytes[2];
} drum_saved;

static void drum_saved_free(drum_saved *saved)
{
    drum_state_free(&saved->state);
    free(saved->list[0]);
    free(saved->list[1]);
}

/* -------------------------------------------------------------------------------------------------
   >>file
   ---------------------------------------------------------------------------------------------- */

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo). */
static uint64_t drum_checksum(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t k;
    for (k = 0; k < size; k++) sum = (sum ^ at[k]) * 1099511628211u;
    return sum;
}

/* A file that is read or written, and the checksum of its bytes so far. */
typedef struct drum_file {
    FILE *file;
    const char *path;
    int writes;
    uint64_t sum;
} drum_file;

static void drum_bytes(drum_file *f, void *bytes, size_t size)
{
    size_t const done =
        f->writes ? fwrite(bytes, 1, size, f->file) : fread(bytes, 1, size, f->file);
    if (done != size)
        stop(1, "%s: could not be %s: %s", f->path, f->writes ? "written" : "read",
             ferror(f->file) ? strerror(errno) : "it is too short");
    f->sum = drum_checksum(f->sum, bytes, size);
}

/* -------------------------------------------------------------------------------------------------
   >>setup
   ---------------------------------------------------------------------------------------------- */

enum { DRUM_NUMBERS = 12 };
static const char *const drum_number_names[DRUM_NUMBERS] = {
    "spheres", "radius", "mass", "time step", "radians per second", "friction", "stiffness",
    "damping", "history", "half", "skin", "triangles"};

/* All that must be the same in both runs. How lists are stored, summed and sorted may differ. */
static void drum_numbers(const drum_options *o, const drum_setup *setup, double number[])
{
    const dem_material *m = &setup->system.between;
    number[0] = o->n;
    number[1] = (double)setup->radius;
    number[2] = (double)setup->mass;
    number[3] = (double)setup->system.dt;
    number[4] = setup->omega;
    number[5] = (double)m->mu;
    number[6] = (double)m->k_n;
    number[7] = (double)m->c_n;
    number[8] = o->history;
    number[9] = o->half;
    number[10] = (double)o->skin;
    number[11] = setup->mesh.triangles;
}

typedef struct drum_head {
    char magic[8];
    int64_t step, bytes[2];
    uint64_t mesh;              /* checksum of the drum */
    double number[DRUM_NUMBERS];
} drum_head;

static drum_head drum_head_of(const drum_options *o, const drum_setup *setup, int64_t step)
{
    const drum_mesh *mesh = &setup->mesh;
    uint64_t const seen = drum_checksum(14695981039346656037u, mesh->rest,
                                        3 * sizeof(float) * (size_t)mesh->vertices);
    drum_head head;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, "drum 1\n\x1a", 8);
    head.step = step;
    head.mesh = drum_checksum(seen, mesh->indices, 3 * sizeof(int32_t) * (size_t)mesh->triangles);
    drum_numbers(o, setup, head.number);
    return head;
}

/* A slice has other triangles, and by those a radius that differs in its last digits. */
static void drum_must_be_same(const char *path, const drum_head *file, const drum_head *own,
                              int is_slice)
{
    int const numbers = is_slice ? DRUM_NUMBERS - 1 : DRUM_NUMBERS;
    double const most = is_slice ? 1e-4 : 0;
    int k;
    if (memcmp(file->magic, own->magic, sizeof own->magic) != 0)
        stop(1, "%s: no file of --save, or one of another machine", path);
    for (k = 0; k < numbers; k++)
        if (!(fabs(file->number[k] - own->number[k]) <= most * fabs(own->number[k])))
            stop(1, "%s is of another set-up: %s %.9g, here %.9g", path, drum_number_names[k],
                 file->number[k], own->number[k]);
    if (!is_slice && file->mesh != own->mesh) stop(1, "%s is of another drum", path);
}

/* -------------------------------------------------------------------------------------------------
   >>save
   ---------------------------------------------------------------------------------------------- */

/* All arrays, one way or the other. */
static void drum_bytes_of_state(drum_file *f, drum_state *state)
{
    size_t const n = (size_t)state->n;
    drum_bytes(f, state->pos, 4 * n * sizeof(float));
    drum_bytes(f, state->vel, 4 * n * sizeof(float));
    drum_bytes(f, state->spin, 4 * n * sizeof(float));
    drum_bytes(f, state->sums, DEM_SUMS * n * sizeof(float));
    drum_bytes(f, state->id, n * sizeof(int32_t));
}

static unsigned char *drum_bytes_of_list(const nlist *list, int64_t *size)
{
    unsigned char *bytes;
    (void)nlist_save(list, NULL, 0, size);
    bytes = (unsigned char *)zeros((size_t)*size, 1);
    MUST(nlist, nlist_save(list, bytes, *size, size), "saving a list");
    return bytes;
}

/* A new file, which will take the place of the old one: a run that is stopped while it writes has
   still the old one. */
static out_file drum_create(const drum_options *o)
{
    char path[1100];
    if (strlen(o->save) > 1000) stop(2, "--save: the name is too long");
    snprintf(path, sizeof path, "%s.new", o->save);
    return create_file(path);
}

static void drum_save_run(const drum_options *o, const drum_setup *setup, const drum_state *state,
                          const nlist *pairs, const nlist *walls, int64_t step)
{
    drum_head head = drum_head_of(o, setup, step);
    drum_state own = *state;
    unsigned char *list[2];
    out_file const out = drum_create(o);
    drum_file f;
    int k;
    list[0] = drum_bytes_of_list(pairs, &head.bytes[0]);
    list[1] = drum_bytes_of_list(walls, &head.bytes[1]);
    f.file = out.file;
    f.path = out.path;
    f.writes = 1;
    f.sum = 14695981039346656037u;
    drum_bytes(&f, &head, sizeof head);
    drum_bytes_of_state(&f, &own);
    for (k = 0; k < 2; k++) drum_bytes(&f, list[k], (size_t)head.bytes[k]);
    drum_bytes(&f, &f.sum, sizeof f.sum);
    close_file(&out);
    if (rename(out.path, o->save) != 0) stop(1, "%s: %s", o->save, strerror(errno));
    free(list[0]);
    free(list[1]);
}

/* -------------------------------------------------------------------------------------------------
   >>load
   ---------------------------------------------------------------------------------------------- */

/* Refuses sizes that the file does not have, before memory is taken for them. */
static void drum_must_fit(const drum_file *f, const drum_head *head, int64_t n)
{
    int64_t const sphere = (3 * 4 + DEM_SUMS) * (int64_t)sizeof(float) + 4;
    struct stat seen;
    int64_t left;
    if (fstat(fileno(f->file), &seen) != 0) stop(1, "%s: %s", f->path, strerror(errno));
    left = (int64_t)seen.st_size - (int64_t)sizeof *head - n * sphere - 8;
    if (head->bytes[0] < 0 || head->bytes[1] < 0 || head->bytes[0] > left ||
        head->bytes[1] != left - head->bytes[0])
        stop(1, "%s: the file is damaged: its size is wrong", f->path);
}

static drum_saved drum_load_run(const drum_options *o, const drum_setup *setup)
{
    drum_head const own = drum_head_of(o, setup, 0);
    drum_head head;
    drum_saved saved;
    drum_file f;
    uint64_t sum, told;
    int k;
    memset(&saved, 0, sizeof saved);
    f.file = fopen(o->load, "rb");
    f.path = o->load;
    f.writes = 0;
    f.sum = 14695981039346656037u;
    if (!f.file) stop(1, "%s: %s", f.path, strerror(errno));
    drum_bytes(&f, &head, sizeof head);
    drum_must_be_same(f.path, &head, &own, o->copies > 1);
    drum_must_fit(&f, &head, o->n);
    saved.state = drum_state_new(o->n);
    saved.step = head.step;
    drum_bytes_of_state(&f, &saved.state);
    for (k = 0; k < 2; k++) {
        saved.bytes[k] = head.bytes[k];
        saved.list[k] = (unsigned char *)zeros((size_t)head.bytes[k], 1);
        drum_bytes(&f, saved.list[k], (size_t)head.bytes[k]);
    }
    sum = f.sum;
    drum_bytes(&f, &told, sizeof told);
    fclose(f.file);
    if (sum != told) stop(1, "%s: the file is damaged: its checksum is wrong", f.path);
    if (!drum_is_whole(&saved.state)) stop(1, "%s: spheres are missing", f.path);
    if (saved.step < 0 || (saved.step > o->steps && !o->curves))
        stop(1, "%s has %lld steps, more than --steps", f.path, (long long)saved.step);
    return saved;
}

/* Lists are made anew. */
static void drum_forget_lists(drum_saved *saved)
{
    int k;
    for (k = 0; k < 2; k++) {
        free(saved->list[k]);
        saved->list[k] = NULL;
    }
}

/* --shuffle: in random order. */
static void drum_shuffle_saved(const drum_options *o, drum_saved *saved)
{
    if (o->history) stop(2, "--load with --shuffle: only with --history 0");
    drum_shuffle(random_seed(o->seed), &saved->state);
    drum_forget_lists(saved);
}

/* -------------------------------------------------------------------------------------------------
   >>copies: --copies N. Slices side by side along the axis, every second one a mirror image: what
   touches an end of its slice then touches its own image, which pushes like that end.
   ---------------------------------------------------------------------------------------------- */

/* The place and motion of sphere i of a slice in its copy k, from `from` to sphere at of `to`.
   A mirror turns the velocity along the axis round, and the spins across it. */
static void drum_copy_sphere(const drum_state *from, size_t i, float middle, int mirrored,
                             drum_state *to, size_t at)
{
    float const sign = mirrored ? -1.0f : 1.0f;
    memcpy(to->pos + 4 * at, from->pos + 4 * i, 4 * sizeof(float));
    memcpy(to->vel + 4 * at, from->vel + 4 * i, 4 * sizeof(float));
    memcpy(to->spin + 4 * at, from->spin + 4 * i, 4 * sizeof(float));
    to->pos[4 * at + 1] = middle + sign * from->pos[4 * i + 1];
    to->vel[4 * at + 1] *= sign;
    to->spin[4 * at] *= sign;
    to->spin[4 * at + 2] *= sign;
}

static drum_saved drum_load_slices(const drum_options *o, const drum_setup *setup)
{
    float const width = (setup->mesh.high - setup->mesh.low) / (float)o->copies;
    drum_options one = *o;
    drum_saved slice, all;
    int32_t k, i;
    one.n = o->n / o->copies;
    slice = drum_load_run(&one, setup);
    memset(&all, 0, sizeof all);
    all.step = slice.step;
    all.state = drum_state_new(o->n);
    for (k = 0; k < o->copies; k++)
        for (i = 0; i < one.n; i++) {
            size_t const at = (size_t)k * (size_t)one.n + (size_t)i;
            drum_copy_sphere(&slice.state, (size_t)i,
                             setup->mesh.low + width * ((float)k + 0.5f), k % 2, &all.state, at);
            all.state.id[at] = k * one.n + slice.state.id[i];
        }
    drum_saved_free(&slice);
    return all;
}

/* From the file, or spheres at rest. Where --save cannot write, the run does not begin. */
static drum_saved drum_first(const drum_options *o, const drum_setup *setup)
{
    drum_saved saved;
    if (o->save) {
        out_file const out = drum_create(o);
        close_file(&out);
    }
    if (o->load) {
        saved = o->copies > 1 ? drum_load_slices(o, setup) : drum_load_run(o, setup);
        if (o->shuffle) drum_shuffle_saved(o, &saved);
        return saved;
    }
    memset(&saved, 0, sizeof saved);
    saved.state = drum_start(o, &setup->mesh, setup->radius, setup->mass);
    return saved;
}

/* One of the saved lists: 0 the pairs, 1 the triangles. */
static void drum_load_list(nlist *list, const nlist_desc *desc, const drum_setup *setup,
                           const drum_saved *saved, int which)
{
    MUST(nlist, nlist_load(list, desc, saved->list[which], saved->bytes[which]),
         "loading a list of contacts");
    if (list->n != saved->state.n || list->keys != which ||
        list->triangles > setup->mesh.triangles)
        stop(1, "loading a list of contacts: it is of other spheres or triangles");
}

#endif /* DRUM_SAVE_H */
