/* nlist_steps_tables.h - the first two parts of nlist_steps.c: one list in four layouts, and sums
   over it.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NLIST_STEPS_TABLES_H
#define NLIST_STEPS_TABLES_H

/* -------------------------------------------------------------------------------------------------
   >>layouts (source 004, Figures 4.1 to 4.3)
   ---------------------------------------------------------------------------------------------- */

static nlist in_layout(scene *s, nlist_layout layout, int32_t width)
{
    nlist list;
    nlist_desc desc = s->desc;
    memset(&list, 0, sizeof list);
    desc.layout = layout;
    desc.width = width;
    desc.grow = 1;
    desc.history = desc.events = 0;
    build(&list, &s->grid, &desc, s->pos, s->n);
    return list;
}

static void print_array(const char *name, const int32_t *value, int64_t count)
{
    int64_t k;
    printf("   %-8s", name);
    for (k = 0; k < count; k++) printf(" %2ld", (long)value[k]);
    printf("\n");
}

/* The slots of each row. */
static void print_slots(const nlist_rows *rows)
{
    char name[16];
    int32_t i;
    for (i = 0; i < rows->n; i++) {
        snprintf(name, sizeof name, "row %ld", (long)i);
        print_array(name, rows->slot + (size_t)i * (size_t)rows->width, rows->width);
    }
}

/* Pairs, and how the entries of a row are found. */
static void print_pairs(const nlist_rows *rows)
{
    print_array("own", rows->own, rows->entries);
    print_array("partner", rows->partner, rows->entries);
    print_array("link", rows->link, rows->entries);
    print_array("head", rows->head, rows->n);
}

/* As 32-bit numbers, for tables and pictures. */
static void starts_of(const nlist_rows *rows, int32_t start[MOST + 1])
{
    int32_t i;
    for (i = 0; i <= rows->n; i++) start[i] = (int32_t)rows->start[i];
}

static void draw_layouts(const nlist *const list[4], const char *out);

static void show_layouts(scene *s, const char *out)
{
    nlist dynamic = in_layout(s, NLIST_DYNAMIC, 0), fixed = in_layout(s, NLIST_STATIC, 8),
          compact = in_layout(s, NLIST_COMPACT, 0),
          hybrid = in_layout(s, NLIST_HYBRID, s->desc.width);
    const nlist *const all[4] = {&dynamic, &fixed, &compact, &hybrid};
    int32_t start[MOST + 1];
    printf("1. Layouts (source 004, Figures 4.1 to 4.3). All pairs within %g at step 0, each\n"
           "   once, in the row of its lower id. -1: none.\n",
           (double)s->desc.radius);
    printf("\n   DYNAMIC (4.1, top): pairs. head: the first entry of a row; link: the next.\n");
    print_pairs(&dynamic.rows[dynamic.current]);
    printf("\n   STATIC (4.1, bottom): %ld slots for each row.\n", (long)fixed.desc.width);
    print_slots(&fixed.rows[fixed.current]);
    printf("\n   COMPACT (4.2): row i is partner[start[i]] to partner[start[i + 1] - 1].\n");
    starts_of(&compact.rows[compact.current], start);
    print_array("start", start, s->n + 1);
    print_array("partner", compact.rows[compact.current].partner, compact.total);
    printf("\n   HYBRID (4.3): %ld slots for each row, and a dynamic rest.\n",
           (long)hybrid.desc.width);
    print_slots(&hybrid.rows[hybrid.current]);
    print_pairs(&hybrid.rows[hybrid.current]);
    draw_layouts(all, out);
    nlist_free(&dynamic);
    nlist_free(&fixed);
    nlist_free(&compact);
    nlist_free(&hybrid);
}

/* -------------------------------------------------------------------------------------------------
   >>processing (source 004, Figures 5.1 to 5.3)
   ---------------------------------------------------------------------------------------------- */

/* Each contact counts as 1 for both of its points; the order of the calls is printed. */
static int count_contact(void *user, int32_t i, int32_t j, void *history, nlist_real *own,
                         nlist_real *other)
{
    (void)user;
    (void)history;
    printf(" %ld-%ld", (long)i, (long)j);
    own[0] = other[0] = 1;
    return 1;
}

static void show_processing(scene *s)
{
    static const char *const name[3] = {"PER_PARTICLE", "PER_CONTACT", "REDUCE"};
    nlist list = in_layout(s, NLIST_DYNAMIC, 0);
    int k;
    int32_t i;
    printf("\n2. Processing (5.1 to 5.3). nlist_sum calls a function for each entry. On a GPU "
           "there is\n   a thread for each row (PER_PARTICLE) or for each entry (PER_CONTACT adds "
           "by atomics,\n   REDUCE after a reduction in the warp). The contacts of each point, in "
           "the three ways:\n\n");
    for (k = 0; k < 3; k++) {
        nlist_real sums[MOST] = {0};
        nlist_sums how;
        memset(&how, 0, sizeof how);
        how.values = 1;
        how.mode = (nlist_mode)(NLIST_PER_PARTICLE + k);
        printf("   %-12s  calls:", name[k]);
        MUST(nlist, nlist_sum(&list, &how, count_contact, NULL, sums), "summing");
        printf("\n   %-12s  sums: ", name[k]);
        for (i = 0; i < s->n; i++) printf(" %g", (double)sums[i]);
        printf("\n");
    }
    nlist_free(&list);
}

#endif /* NLIST_STEPS_TABLES_H */
