/* tablets_save.h - a run of tablets.c that another one goes on with: --save, --load, --copies. A
   part of tablets.h.
   SPDX-License-Identifier: MIT OR Unlicense

   The file holds what a step takes from the step before: tablets, the list of pairs and that of
   triangles, both with the history of their contacts; and, to compare, numbers of the set-up. It is
   of float or double, as the program is.

   >>numbers   is it the same set-up?
   >>state     all that is saved, one way or the other
   >>copies    a long drum, or a wide box, of copies of a part */

#ifndef TABLETS_SAVE_H
#define TABLETS_SAVE_H

#include "../common/state_file.h"

/* -------------------------------------------------------------------------------------------------
   >>numbers
   ---------------------------------------------------------------------------------------------- */

enum { SAVED_NUMBERS = 14, SAVED_MESH = 11 };
static const char *const saved_names[SAVED_NUMBERS] = {
    "scene", "radius", "band", "cap", "rounding", "part of spheres", "friction", "time step",
    "radius of the drum", "length", "turns", "pieces of the mesh", "lifters", "history"
};

/* length: of a part, where there are copies. */
static void numbers_of(const scene *s, double number[SAVED_NUMBERS])
{
    const tablet_options *o = s->options;
    double const part = s->kind == SCENE_DRUM ? s->length / o->copies : s->length;
    double const numbers[SAVED_NUMBERS] = {
        (double)s->kind, o->radius, o->band, o->cap, o->rounding, o->spheres, o->mu,
        (double)s->bodies.base.dt, s->drum, part,
        s->omega, (double)o->mesh, o->lifters, o->no_history ? 0.0 : 1.0};
    memcpy(number, numbers, sizeof numbers);
}

typedef struct saved_head {
    char magic[8];
    int64_t step, n, pairs;     /* pairs: bytes of their list; 0: none */
    int64_t rows, kept;         /* tablets at the mesh, and their contacts */
    double number[SAVED_NUMBERS];
} saved_head;

static saved_head head_of(const scene *s)
{
    saved_head head;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, sizeof(dem_real) == 4 ? "tablet1f" : "tablet1d", 8);
    head.step = s->step;
    head.n = s->bodies.base.n;
    numbers_of(s, head.number);
    return head;
}

/* Is it a number that copies take as it is here? A drum of triangles may be made of parts that
   turned between planes, which is less work; and a run without history of parts that
   had one, and the other way round. */
static int may_differ(const scene *s, int number)
{
    const tablet_options *o = s->options;
    if (number == SAVED_NUMBERS - 1) return o->copies > 1 || o->shuffle;
    return number == SAVED_MESH && o->copies > 1 && o->mesh > 0;
}

static void must_fit(const scene *s, const char *path, const saved_head *file)
{
    saved_head const own = head_of(s);
    int k;
    if (memcmp(file->magic, own.magic, sizeof own.magic) != 0)
        stop(1, "%s: no file of --save, or of other numbers (serial: double, GPU: float)", path);
    if (file->n * s->options->copies != own.n)
        stop(1, "%s has %lld tablets", path, (long long)file->n);
    for (k = 0; k < SAVED_NUMBERS; k++)
        if (!may_differ(s, k) &&
            !(fabs(file->number[k] - own.number[k]) <= 1e-5 * fabs(own.number[k])))
            stop(1, "%s is of another set-up: %s %.9g, here %.9g", path, saved_names[k],
                 file->number[k], own.number[k]);
    if (file->step < 0 || file->pairs < 0 || file->rows < 0 || file->rows > file->n ||
        file->kept < 0 || file->kept > DEM_SLOTS * file->rows)
        stop(1, "%s: the file is damaged", path);
}

/* -------------------------------------------------------------------------------------------------
   >>state
   ---------------------------------------------------------------------------------------------- */

static void tablets_bytes(state_file *f, scene *s)
{
    size_t const n = (size_t)s->bodies.base.n, records = n * DEM_STRIDE;
    state_bytes(f, s->bodies.base.pos, records);
    state_bytes(f, s->bodies.base.vel, records);
    state_bytes(f, s->bodies.base.spin, records);
    state_bytes(f, s->bodies.turn, records);
    state_bytes(f, s->bodies.momentum, records);
    state_bytes(f, s->id, n * sizeof *s->id);
    if (!s->options->mesh)
        state_bytes(f, s->bodies.base.plane_history,
                    n * (size_t)s->bodies.base.planes * 4 * sizeof(dem_real));
}

/* The list of this step. */
static void walls_bytes(state_file *f, scene *s, int64_t rows, int64_t kept)
{
    int const now = s->touched.now;
    state_bytes(f, s->walls.row[now], (size_t)rows * sizeof *s->walls.row[now]);
    state_bytes(f, s->walls.kept[now], (size_t)kept * sizeof *s->walls.kept[now]);
}

#ifndef TABLETS_AS_PART
static void save_scene(scene *s)
{
    state_file f = state_open(s->options->save, 1);
    saved_head head = head_of(s);
    unsigned char *pairs = NULL;
    if (s->pairs.built) {
        (void)nlist_save(&s->pairs, NULL, 0, &head.pairs);
        pairs = (unsigned char *)zeros((size_t)head.pairs, 1);
        MUST(nlist, nlist_save(&s->pairs, pairs, head.pairs, &head.pairs), "saving the list");
    }
    head.rows = s->touched.rows[s->touched.now];
    head.kept = s->touched.kept[s->touched.now];
    state_bytes(&f, &head, sizeof head);
    tablets_bytes(&f, s);
    if (s->options->mesh) walls_bytes(&f, s, head.rows, head.kept);
    if (pairs) state_bytes(&f, pairs, (size_t)head.pairs);
    state_close(&f);
    free(pairs);
}
#endif

/* Row r is that of its tablet; false where the file names none that is there. */
static int own_row(scene *s, int32_t r)
{
    const dem_wall_row *row = &s->walls.row[0][r];
    int32_t k;
    if (row->body < 0 || row->body >= s->bodies.base.n || row->count < 0 ||
        row->count > DEM_SLOTS || row->first < 0 ||
        row->first > s->touched.kept[0] - row->count)
        return 0;
    for (k = row->first; k < row->first + row->count; k++)
        if (s->walls.kept[0][k].triangle < 0 ||
            s->walls.kept[0][k].triangle >= s->walls.mesh.triangles)
            return 0;
    s->walls.row_of[row->body] = r;
    return 1;
}

static void load_walls(state_file *f, scene *s, const saved_head *head)
{
    int32_t const rows = (int32_t)head->rows;
    int32_t r;
    if (rows > s->walls.row_room) grow_walls(&s->walls, rows + rows / 2);
    s->touched.now = 0;
    s->touched.rows[0] = rows;
    s->touched.kept[0] = (int32_t)head->kept;
    walls_bytes(f, s, head->rows, head->kept);
    for (r = 0; r < rows; r++)
        if (!own_row(s, r)) stop(1, "%s: the file is damaged", f->path);
}

static void load_pairs(state_file *f, scene *s, const saved_head *head)
{
    unsigned char *pairs = (unsigned char *)zeros((size_t)head->pairs, 1);
    state_bytes(f, pairs, (size_t)head->pairs);
    MUST(nlist, nlist_load(&s->pairs, &s->desc, pairs, head->pairs), "loading the list");
    free(pairs);
    if (s->pairs.n != s->bodies.base.n) stop(1, "%s: the list is of other tablets", f->path);
}

/* What the head tells, as it was. */
static void load_state(state_file *f, scene *s, const saved_head *head)
{
    s->step = head->step;
    tablets_bytes(f, s);
    if (s->options->mesh) load_walls(f, s, head);
    if (head->pairs) load_pairs(f, s, head);
    state_close(f);
}

/* Lists are made anew: contacts begin without springs. */
static void forget_lists(scene *s)
{
    dem_wall_state const none = {0, {0, 0}, {0, 0}, 0};
    nlist_free(&s->pairs);
    s->touched = none;
    if (s->bodies.base.plane_history)
        memset(s->bodies.base.plane_history, 0,
               (size_t)s->bodies.base.n * DEM_PLANES * 4 * sizeof(dem_real));
}

/* -------------------------------------------------------------------------------------------------
   >>copies: what touches an end of its part then touches its own image, which pushes like that end
   ---------------------------------------------------------------------------------------------- */

/* A mirror across an axis turns the motion along it round, and turns across it. */
static void mirror(scene *s, size_t at, int axis)
{
    int k;
    s->bodies.base.pos[at + (size_t)axis] *= -1;
    s->bodies.base.vel[at + (size_t)axis] *= -1;
    for (k = 0; k < 3; k++) {
        if (k == axis) continue;
        s->bodies.base.spin[at + (size_t)k] *= -1;
        s->bodies.momentum[at + (size_t)k] *= -1;
        s->bodies.turn[at + 1 + (size_t)k] *= -1;
    }
}

/* Copy k of tablet i of the part. */
static void copy_tablet(scene *s, const scene *part, int32_t i, int32_t k)
{
    int32_t const across = (int32_t)(s->wide[0] / s->length + 0.5);
    size_t const from = 4 * (size_t)i,
                 at = 4 * ((size_t)k * (size_t)part->bodies.base.n + (size_t)i);
    int32_t place[2] = {0, k};  /* of the copy: the drum's are one after another along y */
    double const length = s->kind == SCENE_DRUM ? s->length / s->options->copies : s->length;
    int a;
    if (s->kind == SCENE_BOX) {
        place[0] = k % across;
        place[1] = k / across;
    }
    memcpy(s->bodies.base.pos + at, part->bodies.base.pos + from, DEM_STRIDE);
    memcpy(s->bodies.base.vel + at, part->bodies.base.vel + from, DEM_STRIDE);
    memcpy(s->bodies.base.spin + at, part->bodies.base.spin + from, DEM_STRIDE);
    memcpy(s->bodies.turn + at, part->bodies.turn + from, DEM_STRIDE);
    memcpy(s->bodies.momentum + at, part->bodies.momentum + from, DEM_STRIDE);
    s->id[at / 4] = k * part->bodies.base.n + part->id[i];
    for (a = 0; a < 2; a++) {
        double const whole = a ? (s->kind == SCENE_DRUM ? s->length : s->wide[1]) : s->wide[0];
        if (place[a] % 2) mirror(s, at, a);
        if (s->kind == SCENE_DRUM && a == 0) continue;
        s->bodies.base.pos[at + (size_t)a] += (dem_real)(length * (place[a] + 0.5) - whole / 2);
    }
}

static void load_copies(state_file *f, scene *s, const saved_head *head)
{
    scene part = *s;
    int32_t k, i;
    part.bodies.base.n = (int32_t)head->n;
    make_bodies(&part);
    s->step = head->step;
    tablets_bytes(f, &part);
    fclose(f->file); /* what follows are lists */
    for (k = 0; k < s->options->copies; k++)
        for (i = 0; i < part.bodies.base.n; i++) copy_tablet(s, &part, i, k);
    forget_bodies(&part);
}

static void load_scene(scene *s)
{
    state_file f = state_open(s->options->load, 0);
    saved_head head;
    state_bytes(&f, &head, sizeof head);
    must_fit(s, f.path, &head);
    if (s->options->copies > 1) load_copies(&f, s, &head);
    else load_state(&f, s, &head);
    if (s->options->copies > 1 || s->options->shuffle) forget_lists(s);
}

#endif /* TABLETS_SAVE_H */
