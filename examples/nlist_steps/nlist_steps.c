/* nlist_steps.c - the life of contacts, step by step: rows of a list, what they remember, and how
   they find it again.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: what nlist.h keeps of a few moving points in the plane, printed and drawn:

       1. layouts     one list as DYNAMIC, STATIC, COMPACT and HYBRID (source 004, Figures 4.1 to
                      4.3),
       2. processing  the contacts of each point, summed over rows and over entries (5.1 to 5.3),
       3. life        a step after the other: positions, rows in slots (the static part) and the
                      rest (the dynamic part), which entries were found again in the list before,
                      and which contacts began and ended (4.4, 5.4),
       4. sorting     points get new ids, and the list is renumbered (5.5).

   Every contact keeps two numbers: for how many steps it has lasted, and which entry it was. The
   second is written before each build, and the carry of nlist.h brings it to the new entry. So the
   list itself tells what was found again.

   How to run it:

       make build/nlist_steps && build/nlist_steps     (from the top of the repository), or
       cc -O3 examples/nlist_steps/nlist_steps.c -o nlist_steps -lstb -lm
       ./nlist_steps -n 12 --seed 3 --steps 6
       ./nlist_steps --points FILE --width 1           your own points and velocities

   What to look at: >>life below; nlist_steps_input.h has points and options,
   nlist_steps_tables.h the tables of 1 and 2, nlist_steps_draw.h the pictures.

   At step 0 the default points make the list in the figure of nlist.h (>>list), of the pairs 0-1
   0-3 1-2 3-4 3-5 3-6. Source 004 is Kureck (cited in nlist.h). Its in-place list (Figure 5.4)
   marks what is found again and appends the rest; nlist.h writes a new list beside the old one. */

#define PROGRAM "nlist_steps"
#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/table.h"

#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

enum { MOST = 32 };

/* What an entry remembers: zeros when its contact begins. */
typedef struct memory {
    int32_t steps;      /* lists it has been in, this one among them */
    int32_t was;        /* 1 + its entry in the list before; 0: the contact is new */
} memory;

#include "nlist_steps_input.h"

/* The list of the points as they are now, from a grid. */
static void build(nlist *list, ugrid *grid, const nlist_desc *desc, const nlist_real *pos,
                  int32_t n)
{
    ugrid_desc cells;
    memset(&cells, 0, sizeof cells);
    cells.dim = 2;
    cells.cell = desc->radius;
    cells.method = UGRID_COUNT;
    cells.inverse = 1;
    MUST(ugrid, ugrid_build(grid, &cells, pos, 0, n), "building the grid");
    MUST(nlist, nlist_build_ugrid(list, desc, grid, pos, 0, n), "building the list");
}

#include "nlist_steps_tables.h"
#include "nlist_steps_draw.h"

/* -------------------------------------------------------------------------------------------------
   >>life
   ---------------------------------------------------------------------------------------------- */

/* Before a build: each entry writes down which one it is. */
static void write_down(const nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) ((memory *)e.history)->was = (int32_t)e.entry + 1;
    }
}

/* After it: one step more for all, and the table of entries. The first slots of a row are entries
   row * width on; those of the rest follow those of all rows. */
static void show_entries(const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    int64_t const slots = (int64_t)rows->n * rows->width;
    int32_t i;
    printf("   row  partner  entry  where    steps  was entry\n");
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            memory *m = (memory *)e.history;
            m->steps++;
            printf("   %3ld  %7ld  %5ld  ", (long)i, (long)e.id, (long)e.entry);
            if (e.entry < slots) printf("slot %-2ld", (long)(e.entry % rows->width));
            else printf("rest %-2ld", (long)(e.entry - slots));
            printf("  %5ld  ", (long)m->steps);
            if (m->was) printf("%ld\n", (long)m->was - 1);
            else printf("new\n");
        }
    }
}

static void show_events(const nlist *list)
{
    static const char *const name[NLIST_EVENT_KINDS] = {"began", "persist", "ended"};
    int k;
    int64_t e;
    for (k = 0; k < NLIST_EVENT_KINDS; k++) {
        printf("   %s:", name[k]);
        for (e = 0; e < list->event_count[k]; e++) {
            const nlist_event *event = &list->event[k][e];
            const memory *m = (const memory *)(k == NLIST_ENDED
                                                   ? nlist_history_before(list, event->entry)
                                                   : nlist_history(list, event->entry));
            printf(" %ld-%ld (%ld)", (long)event->i, (long)event->j, (long)m->steps);
        }
        printf(list->event_count[k] > 0 ? "\n" : " none\n");
    }
}

static void show_step(const nlist *list, const nlist_real *pos, int32_t step)
{
    int32_t i;
    printf("\n   Step %ld\n   id          x          y\n", (long)step);
    for (i = 0; i < list->n; i++)
        printf("   %2ld %10g %10g\n", (long)i, (double)pos[2 * i], (double)pos[2 * i + 1]);
    show_entries(list);
    show_events(list);
}

static void show_life(scene *s)
{
    int32_t step;
    printf("\n3. Life (4.4, 5.4). steps: the lists that a contact has been in; also in () behind "
           "events.\n   was entry: where it was found in the list before.\n");
    for (step = 0; step <= s->steps; step++) {
        if (step > 0) write_down(&s->list);
        positions_at(s, step);
        build(&s->list, &s->grid, &s->desc, s->pos, s->n);
        show_step(&s->list, s->pos, step);
        draw_step(s, step);
    }
}

/* Points in the order of their cells; the list gets the same ids. The next build finds all
   contacts again. */
static void show_sorting(scene *s)
{
    nlist_real sorted[2 * MOST];
    int32_t i;
    printf("\n4. Sorting (5.5). Points are sorted by cell. Row i becomes row new_id[i], partners "
           "too; a pair stays\n   in the row of the same particle, also where its id is now the "
           "higher one.\n\n   id  new_id\n");
    for (i = 0; i < s->n; i++) printf("   %2ld  %6ld\n", (long)i, (long)s->grid.inverse[i]);
    write_down(&s->list);
    MUST(nlist, nlist_remap(&s->list, s->grid.inverse, s->n), "renumbering");
    MUST(ugrid, ugrid_gather(&s->grid, s->pos, 2 * sizeof *sorted, sorted), "sorting");
    memcpy(s->pos, sorted, (size_t)s->n * 2 * sizeof *sorted);
    build(&s->list, &s->grid, &s->desc, s->pos, s->n);
    show_step(&s->list, s->pos, s->steps + 1);
    draw_step(s, s->steps + 1);
}

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    scene s = scene_new(&o);
    show_layouts(&s, o.out);
    show_processing(&s);
    show_life(&s);
    show_sorting(&s);
    MUST(nlist, nlist_validate(&s.list), "checking the list");
    page_save(&s.page, o.out, "life.png");
    printf("\nPictures: layouts.png and life.png in %s\n", o.out);
    printf("figures: n %ld steps %ld contacts %lld\n", (long)s.n, (long)s.steps,
           (long long)s.list.total);
    scene_free(&s);
    return 0;
}
