/* tablets_forms.h - the forces of tablets.c in five forms, timed: search and force together, and
   with lists.
   SPDX-License-Identifier: MIT OR Unlicense

   Source 004 (tables 6.4, 6.5, 6.7, 6.9) compares on a GPU: search and force in one kernel, "old";
   a list with slots and a rest; a list of pairs alone. Here they are loops of one core, without
   springs, which the first form cannot keep, and without a skin: every form searches in each step.
   The last form keeps something of a contact: where its common normal was.
   The time of building the grid, the same for all, is left out. */

#ifndef TABLETS_FORMS_H
#define TABLETS_FORMS_H

typedef struct form {
    const char *name;
    nlist_layout layout;
    int32_t half, listed, kept;
} form;

/* The largest difference to `sums`, in parts of the largest number there. In float it is not small
   where tablets meet at speed: a contact that begins has its damping at once, and rounding may find
   it from one of the two sides alone. */
static double differs(const scene *s, const dem_real *sums)
{
    double most = 0, largest = 1e-30;
    size_t k;
    for (k = 0; k < (size_t)s->bodies.base.n * DEM_SUMS; k++) {
        most = fmax(most, fabs((double)(s->sums[k] - sums[k])));
        largest = fmax(largest, fabs((double)sums[k]));
    }
    return most / largest;
}

#ifndef __CUDACC__ /* tablets_gpu.h has its own */

enum { FORMS = 5, FORM_ROUNDS = 7 };

static const form forms[FORMS] = {
    {"one-loop", NLIST_COMPACT, 0, 0, 0},       /* each tablet searches its own forces */
    {"full-list", NLIST_COMPACT, 0, 1, 0},
    {"slots+rest", NLIST_HYBRID, 1, 1, 0},      /* 4 slots, the source's best for 1M tablets */
    {"pairs", NLIST_DYNAMIC, 1, 1, 0},          /* its best for 10M */
    {"pairs+normal", NLIST_DYNAMIC, 1, 1, 1}
};

/* Search and force together: nothing is kept, and every contact is computed for both of its
   tablets. */
static void push_while_searching(scene *s)
{
    const dem_system *d = &s->bodies.base;
    int32_t i;
    for (i = 0; i < d->n; i++) {
        dem_real *own = s->sums + DEM_SUMS * (size_t)i, ignored[DEM_SUMS] = {0, 0, 0, 0, 0, 0};
        ugrid_near around = ugrid_near_within(&s->grid, d->pos + 4 * (size_t)i, s->desc.radius);
        while (ugrid_next(&around))
            if (around.id != i) dem_bodies_pair(&s->bodies, i, around.id, NULL, own, ignored);
    }
}

/* seconds[2]: search, forces. list: of this form. */
static void time_form(scene *s, const form *f, nlist *list, double seconds[2])
{
    const dem_system *d = &s->bodies.base;
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    double start = processor_seconds();
    s->desc.layout = f->layout;
    s->desc.half = f->half;
    s->desc.history = f->kept ? DEM_BODY_HISTORY : 0;
    s->desc.width = f->layout == NLIST_HYBRID ? 4 : 0;
    memset(s->sums, 0, (size_t)d->n * DEM_SUMS * sizeof *s->sums);
    if (f->listed)
        MUST(nlist, nlist_build_ugrid(list, &s->desc, &s->grid, d->pos, DEM_STRIDE, d->n),
             "the list");
    seconds[0] = processor_seconds() - start;
    start += seconds[0];
    if (f->listed)
        MUST(nlist, nlist_sum(list, &how, dem_bodies_fn, &s->bodies, s->sums), "the forces");
    else push_while_searching(s);
    seconds[1] = processor_seconds() - start;
}

/* Prints medians of some rounds, in which all forms take turns; and how far the forces are from
   those of the first form. */
static void print_forms(scene *s)
{
    size_t const bytes = (size_t)s->bodies.base.n * DEM_SUMS * sizeof *s->sums;
    dem_real *first = (dem_real *)zeros(1, bytes);
    double spent[FORMS][3][FORM_ROUNDS], apart[FORMS];
    nlist list[FORMS];
    int f, round, k;
    memset(list, 0, sizeof list);
    s->desc.skin = 0;
    s->cells.cell = s->desc.radius;
    s->bodies.base.history_off = 1;
    nlist_free(&s->pairs);
    MUST(ugrid, ugrid_build(&s->grid, &s->cells, s->bodies.base.pos, DEM_STRIDE,
                            s->bodies.base.n), "the grid");
    for (round = 0; round < FORM_ROUNDS; round++)
        for (f = 0; f < FORMS; f++) {
            double seconds[2];
            time_form(s, &forms[f], &list[f], seconds);
            if (!f) memcpy(first, s->sums, bytes);
            apart[f] = differs(s, first);
            for (k = 0; k < 2; k++) spent[f][k][round] = 1e6 * seconds[k];
            spent[f][2][round] = 1e6 * (seconds[0] + seconds[1]);
        }
    puts("form, search us, forces us, together us, entries per tablet, difference:");
    for (f = 0; f < FORMS; f++) {
        printf("form: %-12s %8.1f %8.1f %8.1f %6.2f %.1e\n", forms[f].name,
               median(spent[f][0], FORM_ROUNDS), median(spent[f][1], FORM_ROUNDS),
               median(spent[f][2], FORM_ROUNDS),
               (double)list[f].total / (double)s->bodies.base.n, apart[f]);
        nlist_free(&list[f]);
    }
    free(first);
}

#endif /* __CUDACC__ */
#endif /* TABLETS_FORMS_H */
