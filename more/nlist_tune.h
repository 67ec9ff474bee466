/* more/nlist_tune.h - v0.2.0 - a part of nlist.h: when to build, with what skin, by which search.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A wider skin makes builds rarer, and each step slower, since more pairs are looked at. The tuner
   compares the cost of a step, builds included, at several skins, and stays with the cheapest.

   nlist_moved compares positions, not boxes. Where the box changes too, as under constant pressure,
   nlist_moved_in says whether the list still holds.

   A grid has one size of cells, that of the largest reach. With one large particle among small
   ones, or one far from all others, its cells hold too many particles, or are too many. A tree has
   no such case, but its search is slower for particles of one size. nlist_choose says which is
   cheaper for the particles that you have.

   A list of triangles with a skin holds all that can touch a particle before the next build;
   nlist_mesh_touch says in each step which of them do.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, rules, changes
       declarations    tune, moved-in, choice
       per element     mesh-touch
       serial          tuner, changed-box, choose

   >>use: in every file that calls it, and in the one with NLIST_IMPLEMENTATION

       #define NLIST_WITH_TUNE
       #include "nlist.h"

       nlist_tuner tuner = {0};
       tuner.radius = desc.radius;
       for each step:
           nlist_moved(&list, pos, 0, &moved);
           if (moved) { desc.skin = nlist_next_skin(&tuner); ... build the grid and the list ... }
           ... forces, motion ...
           nlist_tune(&tuner, moved, seconds of this step, with its build);

       nlist_choice choice;
       nlist_choose(&choice, &desc, pos, 0, n);
       if (choice.search == NLIST_BY_GRID) { cells.cell = choice.cell; ... nlist_build_ugrid ... }
       else { ... lbvh_build, of spheres with desc.radii, else of points; nlist_build_lbvh ... }

       with a skin, nlist_build_mesh where nlist_moved says so; in each step, for each particle i:
           nlist_each e = nlist_of(&walls, i);
           while (nlist_next(&e)) {
               if (!nlist_mesh_touch(&walls, &mesh, &e, p, radius, q)) continue;
               ... p touches the triangle nlist_key_triangle(e.id) at q; e.history ...
           }

   >>rules

   You measure the time (CUDA: of work that has ended). What is compared is the mean over whole
   lists, from one build to before the next. The search (a hill climb by ratios) tries 1.5 times the
   best skin so far, then it divided by 1.5, goes on while that is cheaper, and then repeats this by
   smaller ratios, down to 1.1. (Cheaper: by 1 % at least.) When the cost of the chosen skin has
   changed by a quarter, it begins anew. Pairs within the radius do not depend on the skin; the
   order of sums does. The tuner allocates nothing. It belongs to one thread at a time.

   Both searches find the same partners. Their order in a row is another one (>>rules in nlist.h,
   Order).

   >>changes

   0.2.0  2026-11-28. First version.
*/

#ifndef NLIST_H
#error "more/nlist_tune.h is a part of nlist.h: define NLIST_WITH_TUNE and include nlist.h"
#elif 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "more/nlist_tune.h 0.2.0 and nlist.h are of different versions: copy both from one release"
#endif

#ifndef NLIST_TUNE_H
#define NLIST_TUNE_H

#if NLIST_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nlist_tune              nlist_f64_tune
#define nlist_next_skin         nlist_f64_next_skin
#define nlist_choose            nlist_f64_choose
#define nlist_moved_in          nlist_f64_moved_in
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>tune: the tuner, and its two calls
   ---------------------------------------------------------------------------------------------- */

/* All zero but the radius is valid. */
typedef struct nlist_tuner {
    nlist_real radius;      /* in: the reach without the skin */
    nlist_real least, most; /* in: skins to choose from (default: 0.01 and 1 times the radius) */
    nlist_real first;       /* in: the first skin (default: 0.1 times the radius) */
    int32_t lists;          /* in: lists measured at each skin (default: 3) */
    nlist_real skin;        /* out: the skin of the next build */
    nlist_real best;        /* out: the cheapest skin so far */
    double cost;            /* out: its cost, seconds per step; 0 = not measured */
    double steps;           /* out: steps that a list served at it */
    double wider, narrower; /* out: costs of the last skins tried beside it; 0 = none */
    int32_t settled;        /* out: 1 = the search has ended */
    const char *reason;     /* out: why this skin */
    /* private */
    nlist_real list_skin;   /* that the present list was built with */
    double ratio;           /* of a trial to the best */
    double seconds, count;  /* of the present list: time, steps */
    double sum, sum_steps;  /* of the lists measured at this skin */
    int32_t measured;       /* how many */
    int32_t tried;          /* beside the best, at this ratio: bit 0 wider, bit 1 narrower */
} nlist_tuner;

/* The skin for the next build. */
NLIST_API nlist_real nlist_next_skin(nlist_tuner *tuner);

/* After each step: did it build the list, and how long did it take, the build included? Both do
   nothing for a radius that is not positive and finite, and for seconds that are negative or not
   finite. O(1). */
NLIST_API void nlist_tune(nlist_tuner *tuner, int built, double seconds);

/* ----------------------------------------------------------------------------------------------
   >>moved-in: does the list hold in a box that has changed?
   ---------------------------------------------------------------------------------------------- */

/* nlist_moved where the box is min .. max now, on the axes that are periodic in the list. `*moved`
   = 0: no pair that is not listed is within reach in that box, so the list may be used with it; its
   distances are those of your force function. A change of the box takes of the skin what it can
   bring an image nearer. (The walks and functions of the list that use a box, such as the shifts of
   nlist_pairs, use that of the build.) NLIST_BAD_BOX; NLIST_BAD_OPTION: a list from
   more/nlist_boxes.h, whose entries name images of the box of the build: build again. Other results
   as nlist_moved. O(n). */
NLIST_API nlist_result nlist_moved_in(const nlist *list, const nlist_real min[3],
                                      const nlist_real max[3], const nlist_real *pos,
                                      size_t stride, int32_t *moved);

/* ----------------------------------------------------------------------------------------------
   >>choice: a grid, or a tree?
   ---------------------------------------------------------------------------------------------- */

typedef enum nlist_search {
    NLIST_BY_GRID,          /* nlist_build_ugrid */
    NLIST_BY_TREE           /* nlist_build_lbvh */
} nlist_search;

typedef struct nlist_choice {
    nlist_search search;    /* the cheaper one */
    nlist_real cell;        /* for desc.cell of the grid: the largest reach, or more where so many
                               cells would be mostly empty */
    double grid_tests;      /* estimate: candidates that a search of the grid tests per particle */
    double tree_tests;      /* estimate: the cost of a search of the tree, in such tests */
    const char *reason;     /* why */
} nlist_choice;

/* Estimates which search suits these particles and radii, by counts in a sample that depends on n
   alone. desc, pos, stride and n: as for the build. Periodic axes have desc.min and desc.max, the
   others the bounding box of the points. Particles that are not finite do not count: the build
   refuses them, or leaves them out. Results: those of nlist_defaults; NLIST_BAD_RADIUS for a
   largest reach that is not positive and finite. No memory is taken. O(n), at most 65,536 tests of
   pairs. */
NLIST_API nlist_result nlist_choose(nlist_choice *choice, const nlist_desc *desc,
                                    const nlist_real *pos, size_t stride, int32_t n);

#ifdef NLIST_I_LBVH
/* ----------------------------------------------------------------------------------------------
   >>mesh-touch: which entries of a list of triangles touch, where it has a skin

   All triangles that can touch before the next build stand in the row, so those that meet (>>walls
   in nlist.h) are compared there. A sphere rolls from T to U, which are both in its row:

       step            T          U            history of T, U
       1               touches    superseded   a 0
       2               superseded touches      0 a    U begins where T ends: they change
   ---------------------------------------------------------------------------------------------- */

/* 1 if an entry was a contact in the step before: by its state or, without, its history. */
NLIST_FN int nlist_i_was_contact(const nlist_each *e)
{
    const unsigned char *history = (const unsigned char *)e->history;
    int32_t k;
    if (e->all_states) return e->all_states[e->entry] & NLIST_I_TOUCH_NOW;
    for (k = 0; history && k < e->bytes; k++) if (history[k]) return 1;
    return 0;
}

/* Two entries change their history and states. */
NLIST_FN void nlist_i_change_contacts(const nlist_each *a, const nlist_each *b)
{
    unsigned char *x = (unsigned char *)a->history, *y = (unsigned char *)b->history, kept;
    int32_t k;
    for (k = 0; x && k < a->bytes; k++) {
        kept = x[k];
        x[k] = y[k];
        y[k] = kept;
    }
    if (!a->all_states) return;
    kept = a->all_states[a->entry];
    a->all_states[a->entry] = b->all_states[b->entry];
    b->all_states[b->entry] = kept;
}

/* 1 if this wall of row i, that of entry e, touches, and no other of the row comes first. Any that
   does will do: the one found last is tried, then the wall of the call before, then the row after e
   and before it. Where walls meet in one point, those before e are read for one wall only: a search
   begins at a wall that comes before all found, thus not before where the last one ended. */
NLIST_FN int nlist_i_wall_touches(const nlist *list, const nlist_mesh *mesh, int32_t i,
                                  const nlist_i_ball *ball, const nlist_i_wall *wall,
                                  nlist_each *e)
{
    nlist_real const reach = ball->reach + wall->thickness;
    int32_t const last = e->last;
    nlist_i_wall best = *wall;
    nlist_each o = *e;
    int part;
    if (!(wall->d2 <= nlist_i_times(reach, reach))) return 0;
    e->last = wall->triangle;
    if (e->first >= 0 && nlist_i_comes_first(mesh, ball, wall->s, e->first, &best)) return 0;
    if (last >= 0 && nlist_i_comes_first(mesh, ball, wall->s, last, &best)) return 0;
    for (part = 0; part < 2; part++, o = nlist_of(list, i)) /* after e, then before it */
        while (best.triangle == wall->triangle && nlist_next(&o) && o.entry != e->entry)
            (void)nlist_i_comes_first(mesh, ball, wall->s, nlist_key_triangle(o.id), &best);
    e->first = best.triangle;
    return best.triangle == wall->triangle;
}

/* Where entry e begins (touches = 1) or ends (0) to touch `wall`: changes it with an entry of the
   row for which it is the other way round, if the old triangle comes within reach / 16 of the new
   contact (as nlist_i_wander). */
NLIST_FN void nlist_i_hand_over(const nlist *list, const nlist_mesh *mesh, int32_t i,
                                const nlist_i_ball *ball, const nlist_each *e,
                                const nlist_i_wall *wall, int touches)
{
    nlist_real const near_by = nlist_i_times(ball->reach, (nlist_real)(1.0 / 16.0));
    nlist_each o = nlist_of(list, i);
    while (nlist_next(&o)) {
        nlist_i_wall const other = nlist_i_wall_of(mesh, ball, nlist_key_triangle(o.id));
        const nlist_i_wall *begun = touches ? wall : &other, *ended = touches ? &other : wall;
        nlist_real r[3];
        if (o.entry == e->entry || nlist_i_was_contact(&o) != touches) continue;
        (void)nlist_mesh_closest(mesh, ended->triangle, begun->q, r);
        if (!(nlist_i_square_between(begun->q, r) <= nlist_i_times(near_by, near_by))) continue;
        if (nlist_i_wall_touches(list, mesh, i, ball, &other, &o) == touches) continue;
        nlist_i_change_contacts(e, &o);
        return;
    }
}

/* nlist_touch for a list of triangles with a skin: in each step, for each entry e of a row, before
   its history is used. p: the particle now; reach: desc.radius and its own radius. 1 where the
   entry is a contact, by the rules of a build without a skin; q: the point of its triangle closest
   to p. A contact that moves on to a neighbouring triangle takes its history along; so history must
   not be all zero while a contact lasts, or desc.contacts be set. In a kernel too, a thread for
   each row. Cost: a call for a contact compares it with each entry of its row, and so does a call
   where a contact begins or ends, for the entries near it. So a row takes O(row) for each of these,
   at worst O(row^2), since any pair may decide which comes first. All other entries of a row that
   meet in one point take O(row) together, if `e` walks over them. */
NLIST_FN int nlist_mesh_touch(const nlist *list, const nlist_mesh *mesh, nlist_each *e,
                              const nlist_real p[3], nlist_real reach, nlist_real q[3])
{
    int32_t const i = nlist_i_rows(list)->own[e->entry];
    nlist_i_ball ball;
    nlist_i_wall wall;
    int touches;
    memcpy(ball.p, p, sizeof ball.p);
    ball.reach = reach;
    ball.mask = UINT32_MAX; /* rows hold what masks allow */
    wall = nlist_i_wall_of(mesh, &ball, nlist_key_triangle(e->id));
    memcpy(q, wall.q, sizeof wall.q);
    touches = nlist_i_wall_touches(list, mesh, i, &ball, &wall, e);
    if (touches != nlist_i_was_contact(e))
        nlist_i_hand_over(list, mesh, i, &ball, e, &wall, touches);
    return nlist_touch(e, touches);
}
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* NLIST_TUNE_H */

#if defined(NLIST_I_IMPLEMENTED) && !defined(NLIST_TUNE_IMPLEMENTATION_DONE)
#define NLIST_TUNE_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>tuner: the search for the cheapest skin (>>tune)

       skin        0.10    0.15    0.22           0.18    0.15 0.17 0.14 ...
       cost        5.0     4.1     4.4   (0.10)   4.2     ...
       ratio       1.5     1.5     1.5            1.22    ...
                   best -> best    worse, and the other neighbour is known: the next ratio
   ---------------------------------------------------------------------------------------------- */

enum { NLIST_I_WIDER = 1, NLIST_I_NARROWER = 2 };

NLIST_API nlist_real nlist_next_skin(nlist_tuner *tuner)
{
    nlist_real skin;
    if (!tuner || !(tuner->radius > 0) || !nlist_i_finite(tuner->radius)) return 0;
    if (tuner->skin > 0) return tuner->skin;
    if (!(tuner->least > 0)) tuner->least = tuner->radius / 100;
    if (!(tuner->most >= tuner->least)) tuner->most = tuner->least > tuner->radius ? tuner->least
                                                                                 : tuner->radius;
    if (tuner->lists < 1) tuner->lists = 3;
    skin = tuner->first > 0 ? tuner->first : tuner->radius / 10;
    if (skin < tuner->least) skin = tuner->least;
    if (skin > tuner->most) skin = tuner->most;
    tuner->skin = tuner->best = skin;
    tuner->ratio = 1.5;
    tuner->reason = "the first: not measured yet";
    return skin;
}

/* The search has ended with the best skin; says why. */
static void nlist_i_end_tuning(nlist_tuner *tuner)
{
    tuner->settled = 1;
    tuner->skin = tuner->best;
    tuner->reason = (double)tuner->best * 1.1 > (double)tuner->most
                        ? "settled at the widest allowed: a narrower one is no cheaper by 1 %"
                    : (double)tuner->best / 1.1 < (double)tuner->least
                        ? "settled at the narrowest allowed: a wider one is no cheaper by 1 %"
                        : "settled: a wider and a narrower one are no cheaper by 1 %";
}

/* The next skin to measure, beside the best. */
static void nlist_i_propose(nlist_tuner *tuner)
{
    tuner->reason = "searching: a wider or narrower one is being measured";
    for (;;) {
        double const wider = (double)tuner->best * tuner->ratio,
                     narrower = (double)tuner->best / tuner->ratio;
        if (!(tuner->tried & NLIST_I_WIDER) && wider <= (double)tuner->most) {
            tuner->skin = (nlist_real)wider;
            return;
        }
        if (!(tuner->tried & NLIST_I_NARROWER) && narrower >= (double)tuner->least) {
            tuner->skin = (nlist_real)narrower;
            return;
        }
        if (tuner->ratio < 1.15) break;
        tuner->ratio = tuner->ratio > 1.3 ? 1.225 : 1.1;
        tuner->tried = 0;
    }
    nlist_i_end_tuning(tuner);
}

/* The measured skin becomes the best. */
static void nlist_i_take_best(nlist_tuner *tuner, double cost, double steps)
{
    tuner->tried = tuner->cost > 0 && tuner->skin != tuner->best
                       ? (tuner->skin > tuner->best ? NLIST_I_NARROWER : NLIST_I_WIDER)
                       : 0;
    if (tuner->tried & NLIST_I_NARROWER) tuner->narrower = tuner->cost;
    if (tuner->tried & NLIST_I_WIDER) tuner->wider = tuner->cost;
    tuner->best = tuner->skin;
    tuner->cost = cost;
    tuner->steps = steps;
}

/* The skin has been measured. */
static void nlist_i_weigh(nlist_tuner *tuner, double cost, double steps)
{
    if (tuner->settled) {
        if (cost <= 1.25 * tuner->cost && cost >= 0.75 * tuner->cost) return;
        tuner->settled = tuner->tried = 0;
        tuner->ratio = 1.5;
        tuner->wider = tuner->narrower = 0;
        nlist_i_take_best(tuner, cost, steps);
    } else if (!(tuner->cost > 0) || cost < 0.99 * tuner->cost) {
        nlist_i_take_best(tuner, cost, steps);
    } else if (tuner->skin > tuner->best) {
        tuner->wider = cost;
        tuner->tried |= NLIST_I_WIDER;
    } else {
        tuner->narrower = cost;
        tuner->tried |= NLIST_I_NARROWER;
    }
    nlist_i_propose(tuner);
}

/* A list has ended: it counts where it was built with the skin that is being measured. */
static void nlist_i_end_list(nlist_tuner *tuner)
{
    double cost, steps;
    if (tuner->list_skin != tuner->skin || !(tuner->count > 0)) return;
    tuner->sum += tuner->seconds;
    tuner->sum_steps += tuner->count;
    if (++tuner->measured < tuner->lists) return;
    cost = tuner->sum / tuner->sum_steps;
    steps = tuner->sum_steps / tuner->measured;
    tuner->sum = tuner->sum_steps = 0;
    tuner->measured = 0;
    nlist_i_weigh(tuner, cost, steps);
}

NLIST_API void nlist_tune(nlist_tuner *tuner, int built, double seconds)
{
    nlist_real const used = nlist_next_skin(tuner);
    if (!(used > 0) || !(seconds >= 0) || seconds - seconds != 0) return;
    if (built) {
        nlist_i_end_list(tuner);
        tuner->list_skin = used;
        tuner->seconds = tuner->count = 0;
    }
    tuner->seconds += seconds;
    tuner->count += 1;
}

/* ----------------------------------------------------------------------------------------------
   >>changed-box: how much of the skin a change of the box takes (>>moved-in)

   The image of q that is s periods away is at q + s length. When the length changes by c, that
   image comes nearer by |s c| at most, on each axis. Which s can matter? Two particles were at most
   `spread` apart when the list was built, so |s| <= spread / length + 1/2. Both particles have what
   is left of the skin:

       2 displacement + |(s c on each axis)| <= skin
   ---------------------------------------------------------------------------------------------- */

/* The extent of the positions of the build along an axis. */
static double nlist_i_spread(const nlist *list, int a)
{
    const nlist_rows *rows = nlist_i_rows(list);
    double low = 0, high = 0;
    int32_t i, met = 0;
    for (i = 0; i < list->n; i++) {
        double const x = (double)rows->reference[(size_t)i * (size_t)list->desc.dim + (size_t)a];
        if (x - x != 0) continue;
        if (!met || x < low) low = x;
        if (!met || x > high) high = x;
        met = 1;
    }
    return high - low;
}

/* One rounding of a number of the list: 2^-23 and 2^-52. */
#define NLIST_I_ROUNDING (NLIST_I_REAL_KIND == 1 ? 1.1920928955078125e-7 : 2.220446049250313e-16)

/* The most by which the change of the axes brings an image nearer, and what rounding adds. */
static double nlist_i_box_slack(const nlist *was, const nlist *now)
{
    double square = 0, sum = 0;
    int a;
    for (a = 0; a < was->desc.dim; a++) {
        double const before = (double)was->axis[a].length, length = (double)now->axis[a].length;
        double const least = before < length ? before : length;
        double images, change = before < length ? length - before : before - length;
        if (!was->axis[a].periodic || change == 0) continue;
        images = nlist_i_spread(was, a) / least + 0.5;
        if (images < 1e9) images = (double)(int32_t)images;
        change = images * change + 8 * NLIST_I_ROUNDING * (images + 1) * (before + length);
        square += change * change;
        sum += change;
    }
    for (a = 0; a < 6 && sum > 0; a++) sum = (sum + square / sum) / 2; /* the root, from above */
    return sum;
}

NLIST_API nlist_result nlist_moved_in(const nlist *list, const nlist_real min[3],
                                      const nlist_real max[3], const nlist_real *pos,
                                      size_t stride, int32_t *moved)
{
    nlist now;
    double slack;
    int a;
    if (!list || !min || !max || !moved) return NLIST_BAD_ARGUMENT;
    if (list->boxed) return NLIST_BAD_OPTION;
    if (list->n == 0 || !nlist_i_rows(list)->reference)
        return nlist_moved(list, pos, stride, moved);
    now = *list;
    for (a = 0; a < list->desc.dim; a++) {
        now.desc.min[a] = min[a];
        now.desc.max[a] = max[a];
    }
    if (nlist_i_check_box(&now.desc) != NLIST_OK) return NLIST_BAD_BOX;
    nlist_i_axes(&now);
    slack = nlist_i_box_slack(list, &now);
    if (slack > 0)
        now.desc.skin = (nlist_real)(((double)list->desc.skin - slack) *
                                     (1 - 4 * NLIST_I_ROUNDING));
    *moved = 1;
    if (!(now.desc.skin >= 0)) return pos ? NLIST_OK : NLIST_BAD_ARGUMENT;
    return nlist_moved(&now, pos, stride, moved);
}

/* ----------------------------------------------------------------------------------------------
   >>choose: the candidates of both searches, counted in a sample (>>choice)

       grid    tests all particles in the 3^dim cells around the particle: those within 1.5 cells
               along each axis, in the mean
       tree    visits a path down to the particle, and tests little more than what is listed

   A test costs 4 to 5 ns in a grid. A search of a tree takes about 15 times that for each level,
   and 18 for each partner that is listed (measured: 40,000 and 400,000 spheres, 0 to 30 partners).
   ---------------------------------------------------------------------------------------------- */

enum { NLIST_I_SAMPLED_ROWS = 64, NLIST_I_SAMPLED_POINTS = 1024 };

/* What is known of all particles, and the sample of points. */
typedef struct nlist_i_survey {
    double low[3], high[3]; /* the box */
    double reach, cell;
    int32_t points;
    double p[NLIST_I_SAMPLED_POINTS][3];
    double radius[NLIST_I_SAMPLED_POINTS];
    int32_t id[NLIST_I_SAMPLED_POINTS];
} nlist_i_survey;

/* A point where particle i is, and whether it counts. */
static int nlist_i_surveyed(const nlist_desc *desc, const nlist_real *pos, size_t stride, int32_t i,
                            double p[3])
{
    nlist_real x[3];
    int a;
    nlist_i_load(pos, stride, desc->dim, i, x);
    for (a = 0; a < 3; a++) p[a] = (double)x[a];
    return nlist_i_point_finite(x) && nlist_i_finite(nlist_i_radius(desc, i));
}

/* The box and the largest reach. */
static void nlist_i_survey_all(nlist_i_survey *survey, const nlist_desc *desc,
                               const nlist_real *pos, size_t stride, int32_t n)
{
    double largest = 0;
    int32_t i, met = 0;
    int a;
    for (a = 0; a < 3; a++) survey->low[a] = survey->high[a] = 0;
    for (i = 0; i < n; i++) {
        double p[3];
        if (!nlist_i_surveyed(desc, pos, stride, i, p)) continue;
        for (a = 0; a < 3; a++) {
            if (met == 0 || p[a] < survey->low[a]) survey->low[a] = p[a];
            if (met == 0 || p[a] > survey->high[a]) survey->high[a] = p[a];
        }
        if ((double)nlist_i_radius(desc, i) > largest) largest = (double)nlist_i_radius(desc, i);
        met = 1;
    }
    for (a = 0; a < desc->dim; a++) {
        if (!desc->periodic[a]) continue;
        survey->low[a] = (double)desc->min[a];
        survey->high[a] = (double)desc->max[a];
    }
    survey->reach = (double)desc->radius + (double)desc->skin + 2 * largest;
}

/* Takes one particle, at a place that looks random, from each of equal parts of 0 .. n-1. */
static void nlist_i_survey_sample(nlist_i_survey *survey, const nlist_desc *desc,
                                  const nlist_real *pos, size_t stride, int32_t n)
{
    int32_t const parts = n < NLIST_I_SAMPLED_POINTS ? n : NLIST_I_SAMPLED_POINTS;
    int32_t k;
    survey->points = 0;
    for (k = 0; k < parts; k++) {
        int32_t const first = (int32_t)((int64_t)n * k / parts),
                      last = (int32_t)((int64_t)n * (k + 1) / parts);
        uint32_t const mixed = ((uint32_t)k * 2654435761u ^ 0x9e3779b9u) * 2246822519u;
        int32_t const i = first + (int32_t)((mixed >> 8) % (uint32_t)(last - first));
        if (!nlist_i_surveyed(desc, pos, stride, i, survey->p[survey->points])) continue;
        survey->radius[survey->points] = (double)nlist_i_radius(desc, i);
        survey->id[survey->points++] = i;
    }
}

/* The edge of the cells: the largest reach, unless more than 64 cells a particle result. */
static void nlist_i_survey_cell(nlist_i_survey *survey, int dim, int32_t n)
{
    double const most = 64.0 * ((double)n + 1024);
    survey->cell = survey->reach;
    for (;;) {
        double cells = 1;
        int a;
        for (a = 0; a < dim; a++) {
            double const along = (survey->high[a] - survey->low[a]) / survey->cell;
            if (along > 1) cells *= along;
        }
        if (cells <= most) return;
        survey->cell *= 1.25;
    }
}

/* Counts pairs of the sample: those in cells that meet, and those that are listed. */
static void nlist_i_survey_pair(const nlist_i_survey *survey, const nlist_desc *desc, int32_t r,
                                int32_t k, int64_t *meeting, int64_t *listed)
{
    double const limit = (double)desc->radius + (double)desc->skin + survey->radius[r] +
                         survey->radius[k];
    double d2 = 0;
    int a, beside = 1;
    for (a = 0; a < desc->dim; a++) {
        double const length = survey->high[a] - survey->low[a];
        double d = fabs(survey->p[r][a] - survey->p[k][a]);
        if (desc->periodic[a] && length > 0) d = fabs(d - length * floor(d / length + 0.5));
        beside &= d <= 1.5 * survey->cell;
        d2 += d * d;
    }
    *meeting += beside;
    *listed += d2 <= limit * limit;
}

/* The estimates, for n particles. */
static void nlist_i_survey_costs(const nlist_i_survey *survey, const nlist_desc *desc, int32_t n,
                                 nlist_choice *choice)
{
    int32_t const step = (survey->points + NLIST_I_SAMPLED_ROWS - 1) / NLIST_I_SAMPLED_ROWS;
    int64_t meeting = 0, listed = 0, tried = 0;
    int32_t r, k, levels = 0;
    for (r = 0; r < survey->points; r += step) {
        for (k = 0; k < survey->points; k++) {
            if (survey->id[k] == survey->id[r]) continue;
            nlist_i_survey_pair(survey, desc, r, k, &meeting, &listed);
            tried++;
        }
    }
    while (n >> levels > 1) levels++;
    if (tried == 0) tried = 1;
    choice->grid_tests = (double)meeting * n / (double)tried;
    /* one core with AVX-512: a test of the grid takes a third of a nanosecond, a level 15, a pair
       of the list 18 */
    choice->tree_tests = 45.0 * levels + 54.0 * (double)listed * n / (double)tried;
}

NLIST_API nlist_result nlist_choose(nlist_choice *choice, const nlist_desc *desc,
                                    const nlist_real *pos, size_t stride, int32_t n)
{
    nlist_i_survey survey;
    nlist_desc resolved;
    nlist_result result;
    if (!choice || !desc || n < 0 || n > NLIST_I_INT_MAX || (n > 0 && !pos))
        return NLIST_BAD_ARGUMENT;
    memset(choice, 0, sizeof *choice);
    result = nlist_defaults(&resolved, desc);
    if (result != NLIST_OK) return result;
    stride = nlist_i_stride(stride, resolved.dim);
    if (stride == 0) return NLIST_BAD_ARGUMENT;
    nlist_i_survey_all(&survey, &resolved, pos, stride, n);
    choice->cell = (nlist_real)survey.reach;
    if (!(choice->cell > 0) || !nlist_i_finite(choice->cell)) return NLIST_BAD_RADIUS;
    nlist_i_survey_cell(&survey, resolved.dim, n);
    nlist_i_survey_sample(&survey, &resolved, pos, stride, n);
    nlist_i_survey_costs(&survey, &resolved, n, choice);
    choice->search = choice->tree_tests < choice->grid_tests ? NLIST_BY_TREE : NLIST_BY_GRID;
    if (choice->search == NLIST_BY_GRID)
        choice->reason = "grid: few of the particles in the cells around one are not listed";
    else if (survey.cell > survey.reach)
        choice->reason = "tree: the particles fill a small part of their box, and cells as wide as "
                         "the largest reach would be too many";
    else
        choice->reason = "tree: cells as wide as the largest reach hold many particles that a "
                         "search would test in vain";
    choice->cell = (nlist_real)survey.cell;
    return NLIST_OK;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* NLIST_TUNE_IMPLEMENTATION_DONE */

/* Licence: MIT OR Unlicense, as at >>licence in nlist.h. */
