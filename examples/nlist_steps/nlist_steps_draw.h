/* nlist_steps_draw.h - the pictures of nlist_steps.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NLIST_STEPS_DRAW_H
#define NLIST_STEPS_DRAW_H

static const rgb began = {0.45, 0.72, 0.20}, persists = {0.18, 0.45, 0.85};

/* -------------------------------------------------------------------------------------------------
   >>layouts
   ---------------------------------------------------------------------------------------------- */

/* An entry has the color of its row, in all layouts. */
static rgb color_of_row(int32_t i) { return mix(color_of_turn(i), white, 0.5); }

/* An array of entries; row: of each. */
static void draw_entries(picture *p, int x, int y, int wide, const char *name,
                         const int32_t *value, const int32_t *row, int32_t count)
{
    rgb fill[MOST * MOST];
    int32_t k;
    for (k = 0; k < count; k++) fill[k] = color_of_row(row[k]);
    draw_array(p, x, y, wide, name, value, count, fill);
}

/* The slots of each row, in boxes. */
static void draw_slots(picture *p, int x, int y, const nlist_rows *rows)
{
    int const wide = entry_width(2 * rows->width + 4);
    rgb fill[MOST];
    char name[16];
    int32_t i, k;
    for (i = 0; i < rows->n; i++) {
        const int32_t *slot = rows->slot + (size_t)i * (size_t)rows->width;
        for (k = 0; k < rows->width; k++) fill[k] = slot[k] < 0 ? white : color_of_row(i);
        snprintf(name, sizeof name, "row %ld", (long)i);
        draw_array(p, x, y + (int)i * BOX, wide, name, slot, rows->width, fill);
    }
}

/* Pairs in boxes, five lines; `entries` share the width of the page. */
static void draw_pairs(picture *p, int x, int y, const nlist_rows *rows, int32_t entries)
{
    int const wide = entry_width(entries);
    int32_t const count = (int32_t)rows->entries;
    draw_indices(p, x, y, wide, "entry", count);
    draw_entries(p, x, y + 34, wide, "own", rows->own, rows->own, count);
    draw_entries(p, x, y + 34 + BOX, wide, "partner", rows->partner, rows->own, count);
    draw_entries(p, x, y + 34 + 2 * BOX, wide, "link", rows->link, rows->own, count);
    draw_array(p, x, y + 50 + 3 * BOX, entry_width(rows->n), "head, by row", rows->head, rows->n,
               NULL);
}

/* Rows one after the other; own: of each entry. */
static void draw_compact(picture *p, int x, int y, const nlist_rows *rows)
{
    int32_t start[MOST + 1], own[MOST * MOST], i, k;
    starts_of(rows, start);
    for (i = 0; i < rows->n; i++)
        for (k = start[i]; k < start[i + 1]; k++) own[k] = i;
    draw_array(p, x, y, entry_width(rows->n + 1), "start, by row", start, rows->n + 1, NULL);
    draw_entries(p, x, y + BOX + 16, entry_width(start[rows->n]), "partner", rows->partner, own,
                 start[rows->n]);
}

/* list: DYNAMIC, STATIC, COMPACT, HYBRID. */
static void draw_layouts(const nlist *const list[4], const char *out)
{
    const nlist_rows *rows[4];
    int32_t const entries = (int32_t)list[0]->total;
    int const pairs = 34 + 4 * BOX + 110, top = TITLE + CAPTION, right = PAGE / 2 + GAP;
    int const slots = top + pairs + 2 * BOX + 110, rest = slots + (int)list[0]->n * BOX + 72;
    picture p = page_new(PAGE, rest + pairs + GAP,
                         "nlist.h: one list in four layouts (Kureck, Figures 4.1 to 4.3)");
    int k;
    for (k = 0; k < 4; k++) rows[k] = &list[k]->rows[list[k]->current];
    draw_text(&p, right, top - 36, 3, ink, "an entry has the color of its row, in all layouts");
    draw_text(&p, GAP, top - 36, 3, ink, "DYNAMIC (4.1, top): pairs");
    draw_pairs(&p, GAP, top, rows[0], entries);
    draw_text(&p, GAP, top + pairs - 36, 3, ink, "COMPACT (4.2): rows one after the other");
    draw_compact(&p, GAP, top + pairs, rows[2]);
    draw_text(&p, GAP, slots - 36, 3, ink, "STATIC (4.1, bottom): slots");
    draw_slots(&p, GAP, slots, rows[1]);
    draw_text(&p, right, slots - 36, 3, ink, "HYBRID (4.3): slots ...");
    draw_slots(&p, right, slots, rows[3]);
    draw_text(&p, GAP, rest - 36, 3, ink, "HYBRID: ... and the rest");
    draw_pairs(&p, GAP, rest, rows[3], entries);
    page_save(&p, out, "layouts.png");
}

/* -------------------------------------------------------------------------------------------------
   >>life: a panel for each step, and the rows below it
   ---------------------------------------------------------------------------------------------- */

typedef struct view { scene *s; int left, top; } view;

static double to_x(const view *v, int32_t id)
{
    return v->left + ((double)v->s->pos[2 * id] - v->s->left) / v->s->size * PANEL;
}
static double to_y(const view *v, int32_t id)
{
    return v->top + PANEL - ((double)v->s->pos[2 * id + 1] - v->s->bottom) / v->s->size * PANEL;
}

/* A line, and on it, or beside a short one, the steps of the contact. */
static void draw_contact(const view *v, int32_t i, int32_t j, const memory *m)
{
    double const ax = to_x(v, i), ay = to_y(v, i), bx = to_x(v, j), by = to_y(v, j);
    double length, beside, x, y;
    draw_line(&v->s->page, ax, ay, bx, by, 6, m->was ? persists : began);
    length = hypot(bx - ax, by - ay);
    beside = length < 76 && length > 0 ? 34 / length : 0;
    x = (ax + bx) / 2 - beside * fabs(by - ay); /* to the left, and below */
    y = (ay + by) / 2 + beside * fabs(bx - ax);
    draw_disc(&v->s->page, x, y, 14, white);
    draw_number(&v->s->page, (int)x, (int)y, 60, ink, (long)m->steps);
}

/* Spheres that touch where their points are in reach; on them contacts, with their steps, and those
   that ended. */
static void draw_points(const view *v)
{
    picture *p = &v->s->page;
    const nlist *list = &v->s->list;
    double const radius = (double)v->s->desc.radius / 2 / v->s->size * PANEL;
    int32_t i;
    int64_t e;
    for (i = 0; i < v->s->n; i++) draw_disc(p, to_x(v, i), to_y(v, i), radius, faint);
    for (i = 0; i < v->s->n; i++)
        draw_circle(p, to_x(v, i), to_y(v, i), radius, 1.5, middle);
    for (e = 0; e < list->event_count[NLIST_ENDED]; e++) {
        const nlist_event *event = &list->event[NLIST_ENDED][e];
        draw_line(p, to_x(v, event->i), to_y(v, event->i), to_x(v, event->j), to_y(v, event->j), 2,
                  signal);
    }
    for (i = 0; i < v->s->n; i++) {
        nlist_each each = nlist_of(list, i);
        while (nlist_next(&each)) draw_contact(v, i, each.id, (const memory *)each.history);
    }
    for (i = 0; i < v->s->n; i++) {
        draw_disc(p, to_x(v, i), to_y(v, i), 18, ink);
        draw_number(p, (int)to_x(v, i), (int)to_y(v, i), 60, white, (long)i);
    }
}

/* The rows: slots, then what is in the rest. */
static void draw_rows(const view *v)
{
    picture *p = &v->s->page;
    const nlist *list = &v->s->list;
    int64_t const slots = (int64_t)list->n * list->desc.width;
    int32_t i, k;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int const y = v->top + PANEL + 20 + (int)i * (BOX + 4);
        int x = v->left + 120;
        char name[16];
        snprintf(name, sizeof name, "row %ld", (long)i);
        draw_text(p, v->left, y + BOX / 2 - 12, 3, ink, name);
        for (k = 0; k < list->desc.width; k++)
            draw_frame(p, x + 56 * (int)k, y, x + 56 * (int)k + 58, y + BOX, 2, middle);
        while (nlist_next(&e)) {
            const memory *m = (const memory *)e.history;
            if (e.entry == slots + list->rows[list->current].head[i])
                x = v->left + 120 + 56 * list->desc.width + 24;
            draw_entry(p, x, y, 56, mix(m->was ? persists : began, white, 0.6), (long)e.id);
            x += 56;
        }
    }
}

static int rows_height(const scene *s) { return 40 + (int)s->n * (BOX + 4); }

static void draw_step(scene *s, int32_t step)
{
    static const char legend[] =
        "green: began; blue: found again, with the steps it has lasted; red: ended";
    const int64_t *events = s->list.event_count;
    char caption[PICTURE_TEXT];
    view v;
    if (!s->page.rgb) {
        int const lines = (int)(s->steps + 2 + 3) / 4;
        s->page = page_new(PAGE, TITLE + lines * (PANEL + CAPTION + GAP + rows_height(s)),
                           "nlist.h: the life of contacts (Kureck, 4.4 and 5.5)");
        draw_text(&s->page, PAGE / 2 + 60, 44, 3, ink, legend);
    }
    v.s = s;
    snprintf(caption, sizeof caption, "%s %ld: %ld began, %ld persist, %ld ended",
             step > s->steps ? "sorted," : "step", (long)step, (long)events[NLIST_BEGUN],
             (long)events[NLIST_PERSISTED], (long)events[NLIST_ENDED]);
    panel_at(&s->page, (int)step, rows_height(s), caption, &v.left, &v.top);
    picture_clip(&s->page, v.left, v.top, v.left + PANEL, v.top + PANEL);
    draw_points(&v);
    picture_clip(&s->page, v.left, v.top, v.left + PANEL, s->page.height);
    draw_rows(&v);
    picture_clip(&s->page, 0, 0, s->page.width, s->page.height);
}

#endif /* NLIST_STEPS_DRAW_H */
