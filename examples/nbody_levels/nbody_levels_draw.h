/* nbody_levels_draw.h - the pictures of nbody_levels.c, which includes this after its own
   functions.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NBODY_LEVELS_DRAW_H
#define NBODY_LEVELS_DRAW_H

#include "../common/picture.h"

/* -------------------------------------------------------------------------------------------------
   >>panel: a square window of the plane on a page, y up, drawn at twice the size
   ---------------------------------------------------------------------------------------------- */

enum { PANEL = 880, GAP = 40, CAPTION = 84, COLUMNS = 3, TITLE = 92, NOTE = 34 };

typedef struct page { picture canvas; int used; } page;
typedef struct panel { picture *canvas; double x, y, size; int left, top; } panel;

static const rgb white = {1, 1, 1}, ink = {0.13, 0.14, 0.17}, pale = {0.86, 0.87, 0.89},
                 red = {0.88, 0.10, 0.12};
static const rgb near_blue = {0.20, 0.42, 0.85};

/* Each level has a color, the same in all pictures: gray for those where nothing acts. */
static rgb level_color(int32_t level)
{
    static const rgb color[6] = {{0.56, 0.24, 0.72}, {0.02, 0.58, 0.58}, {0.40, 0.62, 0.10},
                                       {0.93, 0.55, 0.06}, {0.80, 0.30, 0.50}, {0.50, 0.36, 0.18}};
    return level < 2 ? mix(ink, white, 0.4) : color[(level - 2) % 6];
}

static page page_new(int panels, const char *title)
{
    int const rows = (panels + COLUMNS - 1) / COLUMNS;
    int const width = COLUMNS * PANEL + (COLUMNS + 1) * GAP,
              height = TITLE + rows * (CAPTION + PANEL + GAP);
    page p;
    p.used = 0;
    p.canvas = picture_new(width, height, white);
    draw_text(&p.canvas, GAP, 30, 5, ink, title);
    return p;
}

static void page_write(page *p, const char *folder, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    picture_save_halved(&p->canvas, path);
}

/* The place of the next panel, and its caption of two lines at most. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static panel next_panel(page *p, const char *format, ...)
{
    panel w;
    char caption[PICTURE_TEXT], line[PICTURE_TEXT];
    const char *second;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(caption, sizeof caption, format, arguments);
    va_end(arguments);
    second = strchr(caption, '\n');
    w.canvas = &p->canvas;
    w.left = GAP + p->used % COLUMNS * (PANEL + GAP);
    w.top = TITLE + CAPTION + p->used / COLUMNS * (CAPTION + PANEL + GAP);
    w.x = w.y = 0;
    w.size = 1;
    p->used++;
    snprintf(line, sizeof line, "%.*s", second ? (int)(second - caption) : (int)strlen(caption),
             caption);
    draw_text(w.canvas, w.left, w.top - 70, 3, ink, line);
    if (second) draw_text(w.canvas, w.left, w.top - 36, 3, mix(ink, white, 0.35), second + 1);
    return w;
}

/* A square of the plane: its middle, and its side; moved so that it stays within the tree's
   square, where it fits. */
static void look_through(panel *w, const scene *s, double x, double y, double size)
{
    const nbody_frame *f = s->sim.frame;
    double const rim = 0.015 * f->edge;
    double const most = f->edge + 2 * rim;
    w->size = size < most ? size : most;
    w->x = fmin(fmax(x - w->size / 2, f->origin[0] - rim), f->origin[0] + f->edge + rim - w->size);
    w->y = fmin(fmax(y - w->size / 2, f->origin[1] - rim), f->origin[1] + f->edge + rim - w->size);
}

/* All of it; where cells of a level are too small to see, the surroundings of the cell that
   holds the body. */
static void look_at_level(panel *w, const scene *s, int32_t level)
{
    double const side = side_at(&s->sim, level);
    int32_t const cell = s->chain[level < s->levels ? level : s->levels - 1];
    vector const corner = corner_of(&s->sim, cell);
    double const own = side_at(&s->sim, s->sim.cell[cell].level);
    look_through(w, s, corner.x + own / 2, corner.y + own / 2,
                 level <= 4 ? 2 * s->sim.frame->edge : 13 * side);
}

/* A cell, and what is around it: `times` its side. */
static void look_at_cell(panel *w, const scene *s, int32_t cell, double times)
{
    vector const corner = corner_of(&s->sim, cell);
    double const side = side_at(&s->sim, s->sim.cell[cell].level);
    look_through(w, s, corner.x + side / 2, corner.y + side / 2, times * side);
}

static double px(const panel *w, double x) { return w->left + (x - w->x) / w->size * PANEL; }
static double py(const panel *w, double y) { return w->top + PANEL - (y - w->y) / w->size * PANEL; }

static int inside(const panel *w, double x, double y, double rim)
{
    double const r = rim * w->size / PANEL;
    return x >= w->x + r && y >= w->y + r && x <= w->x + w->size - r && y <= w->y + w->size - r;
}

/* A rectangle of pixels, cut at the panel's border. */
static void cut_fill(const panel *w, double x0, double y0, double x1, double y1, rgb color)
{
    int const left = (int)fmax(x0 + 0.5, w->left), right = (int)fmin(x1 + 0.5, w->left + PANEL);
    int const top = (int)fmax(y0 + 0.5, w->top), bottom = (int)fmin(y1 + 0.5, w->top + PANEL);
    draw_box(w->canvas, left, top, right, bottom, color, 1);
}

static void rectangle(const panel *w, double x, double y, double side, rgb color)
{
    cut_fill(w, px(w, x), py(w, y + side), px(w, x + side), py(w, y), color);
}

static void outline(const panel *w, double x, double y, double side, double thick, rgb color)
{
    double const left = px(w, x), right = px(w, x + side), top = py(w, y + side), bottom = py(w, y),
                 t = thick / 2;
    cut_fill(w, left - t, top - t, right + t, top + t, color);
    cut_fill(w, left - t, bottom - t, right + t, bottom + t, color);
    cut_fill(w, left - t, top - t, left + t, bottom + t, color);
    cut_fill(w, right - t, top - t, right + t, bottom + t, color);
}

static void dot(const panel *w, double x, double y, double radius, rgb color)
{
    if (inside(w, x, y, radius)) draw_disc(w->canvas, px(w, x), py(w, y), radius, color);
}

/* The lines between `cells` x `cells` squares of a square. */
static void lattice(const panel *w, double x, double y, double side, int cells, double thick,
                    rgb color)
{
    int k;
    for (k = 0; k <= cells; k++) {
        double const at = side * k / cells;
        cut_fill(w, px(w, x) - thick / 2, py(w, y + at) - thick / 2, px(w, x + side) + thick / 2,
                 py(w, y + at) + thick / 2, color);
        cut_fill(w, px(w, x + at) - thick / 2, py(w, y + side) - thick / 2,
                 px(w, x + at) + thick / 2, py(w, y) + thick / 2, color);
    }
}

/* The lines between `cells` x `cells` parts of a cell. */
static void lattice_in(const panel *w, const scene *s, int32_t cell, int cells, double thick,
                       rgb color)
{
    vector const corner = corner_of(&s->sim, cell);
    lattice(w, corner.x, corner.y, side_at(&s->sim, s->sim.cell[cell].level), cells, thick, color);
}

static void grid_of_level(const panel *w, const scene *s, int32_t level, rgb color)
{
    const nbody_frame *f = s->sim.frame;
    if (side_at(&s->sim, level) / w->size * PANEL < 6) return; /* nothing but lines */
    lattice(w, f->origin[0], f->origin[1], f->edge, 1 << level, 2, color);
}

static void fill_cell(const panel *w, const scene *s, int32_t cell, rgb color)
{
    vector const corner = corner_of(&s->sim, cell);
    rectangle(w, corner.x, corner.y, side_at(&s->sim, s->sim.cell[cell].level), color);
}

static void outline_cell(const panel *w, const scene *s, int32_t cell, double thick, rgb color)
{
    vector const corner = corner_of(&s->sim, cell);
    outline(w, corner.x, corner.y, side_at(&s->sim, s->sim.cell[cell].level), thick, color);
}

/* Bodies of a cell. */
static void bodies_of(const panel *w, const scene *s, int32_t cell, double radius, rgb color)
{
    const nbody_cell *c = &s->sim.cell[cell];
    int32_t k;
    for (k = c->first; k < c->first + c->count; k++)
        dot(w, (double)s->sim.x[k], (double)s->sim.y[k], radius, color);
}

/* Dots so large that they neither vanish nor touch: by how far apart n evenly spread bodies are. */
static double dot_radius(const panel *w, const scene *s)
{
    double const apart = PANEL / w->size * s->sim.frame->edge / sqrt((double)s->n);
    return fmax(1.6, fmin(6, 0.2 * apart));
}

static void all_bodies(const panel *w, const scene *s, rgb color)
{
    bodies_of(w, s, 0, dot_radius(w, s), color);
}

static void the_body(const panel *w, const scene *s)
{
    double const x = (double)s->sim.x[s->place], y = (double)s->sim.y[s->place];
    dot(w, x, y, 13, white);
    dot(w, x, y, 10, red);
}

/* Points that stand for bodies: the area of a dot is its mass, as long as that can be seen.
   Negative ones are rings. */
static void draw_points(const panel *w, const scene *s, int32_t level, const point *at,
                        int32_t count, rgb color)
{
    double const subcell = PANEL / w->size * side_at(&s->sim, level) / 8;
    double const unit = fmax(dot_radius(w, s), 0.12 * fmin(subcell, PANEL / 8)),
                 most = fmax(unit, 0.5 * subcell);
    int32_t k;
    for (k = 0; k < count; k++) {
        double const m = fabs(at[k].m) * s->sim.frame->mass;
        double const r = fmax(1.2, fmin(unit * sqrt(m), most));
        dot(w, at[k].x, at[k].y, r, color);
        if (at[k].m < 0) dot(w, at[k].x, at[k].y, 0.6 * r, white);
    }
}

/* The frame of a panel, at last; the body, where it is wanted. */
static void finish(const panel *w)
{
    draw_frame(w->canvas, w->left - 2, w->top - 2, w->left + PANEL + 2, w->top + PANEL + 2, 2,
               mix(ink, white, 0.6));
}

static void finish_with_body(const panel *w, const scene *s)
{
    the_body(w, s);
    finish(w);
}

/* Text of one paragraph, in lines as wide as a panel. Returns where the next one begins. */
static int paragraph(const panel *w, int x, int y, const char *text, int length)
{
    char line[PICTURE_TEXT] = "", longer[2 * PICTURE_TEXT];
    while (length > 0) {
        int const word = (int)strcspn(text, " \n"), taken = word < length ? word : length;
        snprintf(longer, sizeof longer, "%s%s%.*s", line, *line ? " " : "", taken, text);
        if (*line && 3 * stb_easy_font_width(longer) > PANEL) {
            draw_text(w->canvas, x, y, 3, ink, line);
            y += NOTE;
            snprintf(longer, sizeof longer, "%.*s", taken, text);
        }
        snprintf(line, sizeof line, "%.*s", PICTURE_TEXT - 1, longer);
        text += taken + 1;
        length -= taken + 1;
    }
    draw_text(w->canvas, x, y, 3, ink, line);
    return y + NOTE;
}

/* The color that a letter stands for in a key: a digit for a level, # for near, . and : for
   bodies. */
static rgb key_color(char letter)
{
    return letter == '#'   ? near_blue
           : letter == '.' ? ink
           : letter == ':' ? mix(ink, white, 0.7)
                           : level_color(letter - '0');
}

/* A panel of words, a paragraph to a line of `text`. One that begins with @ and a letter gets the
   color of key_color before it. */
static void notes(page *p, const char *text)
{
    panel const w = next_panel(p, "%s", "");
    int y = w.top + 20;
    while (*text) {
        int const length = (int)strcspn(text, "\n"), key = *text == '@' ? 2 : 0;
        if (key)
            draw_box(w.canvas, w.left, y, w.left + 22, y + 22,
                     key_color(text[1]), 1);
        y = paragraph(&w, w.left + 20 * key, y, text + key, length - key) + (key ? 0 : NOTE / 2);
        text += length + (text[length] == '\n');
    }
}

/* -------------------------------------------------------------------------------------------------
   >>pictures
   ---------------------------------------------------------------------------------------------- */

enum { MOST_PANELS = NBODY_MAX_LEVELS + 8, WORDS = 1200 };

/* Appends a key for the color of each level from 2 to last; colors repeat after six levels. */
static void add_level_keys(char text[WORDS], const char *what, int32_t last)
{
    int32_t level;
    for (level = 2; level <= last && level < 8; level++) {
        size_t const used = strlen(text);
        snprintf(text + used, WORDS - used, level + 6 > last ? "@%d%s %d\n" : "@%d%s %d, %d\n",
                 (int)level, what, (int)level, (int)level + 6);
    }
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void say(char caption[PICTURE_TEXT], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(caption, PICTURE_TEXT, format, arguments);
    va_end(arguments);
}

static int32_t cells_at(const nbody *sim, int32_t level, int32_t *first)
{
    *first = sim->frame->level_first[level];
    return sim->frame->level_first[level + 1] - *first;
}

/* Figures 5 and 6. The more bodies, the darker the cell. */
static void draw_grid(page *p, const scene *s, int32_t level)
{
    const nbody *sim = &s->sim;
    panel w;
    int32_t first, k, most = 0;
    int32_t const cells = cells_at(sim, level, &first);
    for (k = first; k < first + cells; k++)
        if (sim->cell[k].count > most) most = sim->cell[k].count;
    printf("   level %ld: %6ld cells with bodies, of %6ld; the fullest has %ld\n", (long)level,
           (long)cells, 1L << 2 * level, (long)most);
    w = next_panel(p, "level %ld: %ld x %ld cells\n%ld with bodies, %ld in the fullest",
                   (long)level, 1L << level, 1L << level, (long)cells, (long)most);
    look_through(&w, s, 0, 0, 2 * sim->frame->edge);
    for (k = first; k < first + cells; k++)
        fill_cell(&w, s, k,
                  mix(white, level_color(level), 0.05 + 0.35 * sim->cell[k].count / most));
    grid_of_level(&w, s, level, white);
    all_bodies(&w, s, mix(ink, white, 0.2));
    outline_cell(&w, s, s->chain[level], 6, ink);
    finish_with_body(&w, s);
}

static void picture_grids(const scene *s, const char *folder)
{
    static const char text[] =
        "The square around all bodies has 2 x 2 cells, each of these again, and so on. Bodies are "
        "stored in the order of "
        "the last level's cells: those of any cell of any level are one piece of the arrays.\n"
        "Framed: the cells that hold the red body.\n"
        "The darker a cell, the more bodies.";
    page p = page_new(s->levels + 1,
                      "1. Bodies in a grid, and a hierarchy of grids (Kalms, Figures 5 and 6)");
    int32_t level;
    printf("\n1_grids: bodies in a grid, and a hierarchy of grids (Figures 5 and 6)\n");
    for (level = 0; level < s->levels; level++) draw_grid(&p, s, level);
    notes(&p, text);
    page_write(&p, folder, "1_grids");
}

/* Figure 7: by how far from the body a pixel is. */
static void draw_rings(page *p, const scene *s)
{
    int32_t const last = s->levels - 1;
    double const x = (double)s->sim.x[s->place], y = (double)s->sim.y[s->place],
                 least = 1.5 * side_at(&s->sim, last);
    panel w = next_panel(
        p, "What error is allowed (Figure 7)\nblue: none; it may double from ring to ring");
    int i, j;
    look_through(&w, s, 0, 0, 2 * s->sim.frame->edge);
    for (j = 0; j < PANEL; j++)
        for (i = 0; i < PANEL; i++) {
            double const d = hypot(w.x + (i + 0.5) * w.size / PANEL - x,
                                   w.y + (PANEL - j - 0.5) * w.size / PANEL - y);
            int32_t const ring = d > least ? 1 + (int32_t)floor(log2(d / least)) : 0,
                          level = last + 1 - ring;
            rgb const color = ring ? level_color(level > 1 ? level : 2) : near_blue;
            draw_pixel(w.canvas, w.left + i, w.top + j, mix(white, color, ring ? 0.28 : 0.4), 1);
        }
    all_bodies(&w, s, mix(ink, white, 0.4));
    finish_with_body(&w, s);
}

static int is_near(const actor *a) { return a->how == NEAR_BODIES || a->how == NEAR_SOURCES; }
static rgb actor_color(const actor *a) { return is_near(a) ? near_blue : level_color(a->level); }

/* Figure 8. */
static void draw_near_cells(page *p, const scene *s)
{
    int32_t const last = s->levels - 1;
    tally const t = tally_of(s, last, NEAR_BODIES, NEAR_SOURCES);
    panel w;
    int32_t k;
    w = next_panel(
        p, "Near cells of the last level (Figure 8)\n%ld cells, %ld bodies: summed one by one",
        t.cells, t.bodies);
    look_through(&w, s, 0, 0, 2 * s->sim.frame->edge);
    for (k = 0; k < s->actors; k++)
        if (is_near(&s->actor[k])) fill_cell(&w, s, s->actor[k].cell, mix(white, near_blue, 0.4));
    grid_of_level(&w, s, last, pale);
    all_bodies(&w, s, mix(ink, white, 0.4));
    finish_with_body(&w, s);
}

/* Figure 9: each cell at its own size, in the color of the level at which it acts. */
static void draw_tiles(page *p, const scene *s)
{
    panel w = next_panel(p, "What the tree makes of that (Figure 9)\neach acting cell in the color "
                            "of its level; blue: near");
    int32_t k;
    look_through(&w, s, 0, 0, 2 * s->sim.frame->edge);
    for (k = 0; k < s->actors; k++)
        fill_cell(&w, s, s->actor[k].cell, mix(white, actor_color(&s->actor[k]), 0.4));
    for (k = 0; k < s->actors; k++) outline_cell(&w, s, s->actor[k].cell, 2, white);
    all_bodies(&w, s, mix(ink, white, 0.4));
    finish_with_body(&w, s);
}

/* The colors of levels 2 and on, at the right of the title. */
static void level_keys(page *p, int32_t levels)
{
    int32_t const last = levels - 1 < 7 ? levels - 1 : 7;
    int x = p->canvas.width - GAP - 110 - 62 * (int)(last - 1);
    int32_t level;
    char digits[8];
    draw_text(&p->canvas, x, 40, 3, ink, "level");
    for (level = 2, x += 110; level <= last; level++, x += 62) {
        draw_box(&p->canvas, x, 40, x + 22, 62, level_color(level), 1);
        snprintf(digits, sizeof digits, "%d", (int)level);
        draw_text(&p->canvas, x + 30, 40, 3, ink, digits);
    }
}

static void picture_distance(const scene *s, const char *folder)
{
    page p = page_new(
        3, "2. What is near must be exact, what is far need not (Kalms, Figures 7, 8 and 9)");
    tally const t = tally_of(s, s->levels - 1, NEAR_BODIES, NEAR_SOURCES);
    printf("\n2_distance: what is near must be exact, what is far need not (Figures 7, 8 and 9)\n");
    printf("   near cells %ld with %ld bodies, far cells %ld with %ld bodies\n", t.cells, t.bodies,
           (long)s->actors - t.cells, (long)s->n - t.bodies);
    draw_rings(&p, s);
    draw_near_cells(&p, s);
    draw_tiles(&p, s);
    level_keys(&p, s->levels);
    page_write(&p, folder, "2_distance");
}

/* Figure 10: the bodies of 2 x 2 cells of the last level, sorted into 8 x 8 sub-cells; then what
   stands for them. */
static void draw_made(page *p, const scene *s, int32_t cell, int shown)
{
    const nbody *sim = &s->sim;
    int32_t const level = sim->cell[cell].level;
    point source[MOST_NODES];
    int32_t const count = sources_of(sim, cell, source);
    char caption[PICTURE_TEXT];
    panel w;
    say(caption,
        "its %ld virtual particles (Figure 10)\neach the mass of a sub-cell, at its centre of mass",
        (long)count);
    if (!shown)
        say(caption, "2 x 2 cells of level %ld: %ld bodies\nsorted into 8 x 8 sub-cells",
            (long)level + 1, (long)sim->cell[cell].count);
    w = next_panel(p, "%s", caption);
    look_at_cell(&w, s, cell, 1.1);
    lattice_in(&w, s, cell, 8, 2, pale);
    lattice_in(&w, s, cell, 2, 4, mix(ink, white, shown ? 0.7 : 0.3));
    bodies_of(&w, s, cell, 8, shown ? mix(ink, white, 0.7) : mix(ink, white, 0.1));
    if (shown) draw_points(&w, s, level, source, count, level_color(level));
    finish(&w);
}

/* Figure 11, the lowest layer: bodies stand for themselves. */
static void draw_lowest(page *p, const scene *s)
{
    panel w = next_panel(p, "level %ld: no virtual particles (Figure 11)\n%ld bodies",
                         (long)s->levels - 1, (long)s->n);
    look_at_level(&w, s, s->levels - 1);
    grid_of_level(&w, s, s->levels - 1, pale);
    all_bodies(&w, s, ink);
    finish(&w);
}

/* All virtual particles of a level. */
static void draw_layer(page *p, const scene *s, int32_t level)
{
    const nbody *sim = &s->sim;
    point source[MOST_NODES];
    panel w;
    int32_t first, k;
    int32_t const cells = cells_at(sim, level, &first);
    long made = 0;
    double mass = 0;
    for (k = first; k < first + cells; k++) {
        int32_t j, count = sources_of(sim, k, source);
        for (j = 0; j < count; j++) mass += source[j].m * sim->frame->mass;
        made += count;
    }
    printf("   level %ld: %6ld virtual particles in %5ld cells, of mass %.6g\n", (long)level, made,
           (long)cells, mass);
    w = next_panel(p, "level %ld: %ld virtual particles (Figure 11)\nin %ld cells", (long)level,
                   made, (long)cells);
    look_at_level(&w, s, level);
    grid_of_level(&w, s, level, pale);
    for (k = first; k < first + cells; k++)
        draw_points(&w, s, level, source, sources_of(sim, k, source), level_color(level));
    finish(&w);
}

static void picture_virtual(const scene *s, const char *folder)
{
    char text[WORDS] = "A cell acts on what is far from it through few virtual particles: "
                       "the masses of its 8 x 8 sub-cells, each at its "
                       "centre of mass; empty ones have none.\n"
                       "The cells of the last level have none: there the bodies act. From "
                       "level to level four times as many bodies share "
                       "64 of them.\n"
                       "The area of a dot is its mass, up to what fits.\n"
                       "@.bodies\n@:bodies that a virtual particle stands for\n";
    int32_t const above = s->levels - 2;
    page p;
    int32_t level;
    printf("\n3_virtual_particles: a hierarchy of virtual particles (Figures 10 and 11)\n");
    if (above < 2) { printf("   none with %ld levels: 4 are needed\n", (long)s->levels); return; }
    p = page_new(above + 3, "3. Virtual particles (Kalms, Figures 10 and 11)");
    draw_made(&p, s, s->chain[above], 0);
    draw_made(&p, s, s->chain[above], 1);
    draw_lowest(&p, s);
    for (level = above; level >= 2; level--) draw_layer(&p, s, level);
    add_level_keys(text, "virtual particles of level", above);
    notes(&p, text);
    page_write(&p, folder, "3_virtual_particles");
}

/* ---- what acts: Figures 12 and 15 ---- */

static void draw_nodes(const panel *w, const scene *s, int32_t cell, double radius, rgb color)
{
    int32_t const k = s->sim.rule.side;
    int32_t i, j;
    for (j = 0; j < k; j++)
        for (i = 0; i < k; i++) {
            vector const at = node_at(&s->sim, cell, i, j);
            dot(w, at.x, at.y, radius, color);
        }
}

static void draw_actor(const panel *w, const scene *s, const actor *a, double strength)
{
    fill_cell(w, s, a->cell, mix(white, actor_color(a), strength));
}

/* The 3 x 3 cells around a cell, as far as they lie in the square. */
static void outline_around(const panel *w, const scene *s, int32_t cell, rgb color)
{
    const nbody_frame *f = s->sim.frame;
    const nbody_cell *c = &s->sim.cell[cell];
    double const side = side_at(&s->sim, c->level), thick = 3;
    int32_t const most = (1 << c->level) - 1;
    int32_t const x0 = c->x > 0 ? c->x - 1 : 0, x1 = c->x < most ? c->x + 2 : c->x + 1;
    int32_t const y0 = c->y > 0 ? c->y - 1 : 0, y1 = c->y < most ? c->y + 2 : c->y + 1;
    double const left = px(w, f->origin[0] + side * x0), right = px(w, f->origin[0] + side * x1);
    double const bottom = py(w, f->origin[1] + side * y0), top = py(w, f->origin[1] + side * y1);
    cut_fill(w, left - thick, top - thick, right + thick, top + thick, color);
    cut_fill(w, left - thick, bottom - thick, right + thick, bottom + thick, color);
    cut_fill(w, left - thick, top - thick, left + thick, bottom + thick, color);
    cut_fill(w, right - thick, top - thick, right + thick, bottom + thick, color);
}

/* The cells that act in one step, over those of the steps before it. Larger leaves, whose bodies
   act, are framed. */
static void draw_step(const panel *w, const scene *s, int32_t level, int near_step)
{
    int32_t k;
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        int const now = is_near(a) == near_step && (near_step || a->level == level);
        int const before = !is_near(a) && (near_step || a->level < level);
        if (now || before) draw_actor(w, s, a, now ? 0.28 : 0.10);
    }
    grid_of_level(w, s, level, pale);
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        if (is_near(a) != near_step || (!near_step && a->level != level)) continue;
        if (s->sim.cell[a->cell].level != level)
            outline_cell(w, s, a->cell, 4, mix(actor_color(a), ink, 0.4));
        draw_points(w, s, s->sim.cell[a->cell].level, &s->point[a->first], a->count,
                    mix(actor_color(a), ink, 0.25));
    }
}

static void draw_far_step(page *p, const scene *s, int32_t level, int on_nodes)
{
    tally const sources = tally_of(s, level, FAR_SOURCES, FAR_SOURCES),
                bodies = tally_of(s, level, FAR_BODIES, FAR_BODIES);
    char caption[PICTURE_TEXT];
    panel w;
    if (sources.cells && bodies.cells)
        say(caption, "level %ld: %ld + %ld cells act\nby %ld virtual particles, and by %ld bodies",
            (long)level, sources.cells, bodies.cells, sources.points, bodies.bodies);
    else if (bodies.cells)
        say(caption, "level %ld: %ld cells act\nby their %ld bodies", (long)level, bodies.cells,
            bodies.bodies);
    else
        say(caption, "level %ld: %ld cells act\n%ld virtual particles for %ld bodies", (long)level,
            sources.cells, sources.points, sources.bodies);
    w = next_panel(p, "%s", caption);
    look_at_level(&w, s, level);
    draw_step(&w, s, level, 0);
    outline_around(&w, s, s->chain[level - 1], mix(ink, white, 0.3));
    if (on_nodes) {
        double const apart = PANEL / w.size * side_at(&s->sim, level) / s->sim.rule.side;
        fill_cell(&w, s, s->chain[level], white);
        draw_nodes(&w, s, s->chain[level], fmax(2, fmin(6, 0.3 * apart)), ink);
    }
    outline_cell(&w, s, s->chain[level], 5, ink);
    finish_with_body(&w, s);
}

static void draw_near_step(page *p, const scene *s)
{
    int32_t const last = s->levels - 1;
    tally const whole = tally_of(s, last, NEAR_BODIES, NEAR_BODIES),
                parts = tally_of(s, last, NEAR_SOURCES, NEAR_SOURCES);
    char caption[PICTURE_TEXT];
    panel w;
    say(caption, "near: %ld cells\n%ld bodies, one by one", whole.cells, whole.bodies);
    if (parts.cells)
        say(caption, "near: %ld + %ld cells\nby %ld virtual particles, and by %ld bodies",
            parts.cells, whole.cells, parts.points, whole.bodies);
    w = next_panel(p, "%s", caption);
    look_at_cell(&w, s, s->chain[last], 5);
    draw_step(&w, s, last, 1);
    outline_cell(&w, s, s->chain[last], 5, ink);
    finish_with_body(&w, s);
}

static void draw_all_steps(page *p, const scene *s)
{
    panel w;
    int32_t k;
    w = next_panel(p, "all of it: %ld points\ninstead of %ld bodies", (long)s->points, (long)s->n);
    look_through(&w, s, 0, 0, 2 * s->sim.frame->edge);
    for (k = 0; k < s->actors; k++) draw_actor(&w, s, &s->actor[k], 0.28);
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        outline_cell(&w, s, a->cell, 2, white);
        draw_points(&w, s, s->sim.cell[a->cell].level, &s->point[a->first], a->count,
                    mix(actor_color(a), ink, 0.25));
    }
    finish_with_body(&w, s);
}

/* Nodes of the cell above the body's leaf, and those of the leaf that begin with what is
   interpolated between them. */
static void draw_inheritance(page *p, const scene *s)
{
    int32_t const last = s->levels - 1, parent = s->chain[last - 1];
    panel w = next_panel(
        p, "nodes of level %ld (large) hand on what they feel\nto nodes of level %ld (small)",
        (long)last - 1, (long)last);
    look_at_cell(&w, s, parent, 1.1);
    lattice_in(&w, s, parent, 2, 3, mix(ink, white, 0.6));
    outline_cell(&w, s, s->chain[last], 5, ink);
    draw_nodes(&w, s, parent, 14, mix(white, level_color(last - 1), 0.6));
    draw_nodes(&w, s, s->chain[last], 5, level_color(last));
    finish_with_body(&w, s);
}

/* Returns the error of the force, as a share. */
static double picture_walk(const scene *s, const char *folder, const char *name, const char *title,
                           const char *text)
{
    int const on_nodes = s->sim.desc.method == NBODY_FORCE_NODES;
    page p = page_new((s->levels > 2 ? s->levels - 2 : 0) + 3, title);
    int32_t level;
    print_actors(s);
    for (level = 2; level < s->levels; level++) draw_far_step(&p, s, level, on_nodes);
    draw_near_step(&p, s);
    if (s->sim.rule.linear && on_nodes && s->levels > 3) draw_inheritance(&p, s);
    else draw_all_steps(&p, s);
    notes(&p, text);
    page_write(&p, folder, name);
    return print_force(s);
}

static double picture_on_a_body(const scene *s, const char *folder)
{
    char text[WORDS] = "Framed in gray: the cell's parent and all that touches it. What "
                       "lies outside has acted one level higher; what "
                       "touches the cell itself (white) is left to the next level.\n"
                       "So each body is counted once, and the points through which it acts "
                       "are the farther apart the farther they are.\n"
                       "@#near\n";
    add_level_keys(text, "level", s->levels - 1);
    printf("\n4_on_a_body: virtual particles act on one body (Figure 12)\n");
    return picture_walk(s, folder, "4_on_a_body",
                        "4. Virtual particles act on one body (Kalms, Figure 12)", text);
}

static double picture_on_nodes(const scene *s, const char *folder)
{
    char text[WORDS] = "Far cells act no longer on the body, but on the 8 x 8 nodes of its "
                       "cell, once for all bodies there.\n"
                       "The nodes of a cell begin with what those of its parent feel, "
                       "interpolated: all that lies outside the gray "
                       "frame.\n"
                       "At the end the body interpolates between 2 x 2 nodes of the last "
                       "level, and near bodies act on it directly.\n"
                       "@#near\n";
    add_level_keys(text, "level", s->levels - 1);
    printf("\n6_on_nodes: virtual particles act on force nodes (Figure 15)\n");
    return picture_walk(s, folder, "6_on_nodes",
                        "6. Virtual particles act on force nodes (Kalms, Figure 15)", text);
}

/* ---- force nodes: Figures 13 and 14 ---- */

/* The four cells of the last level around the body, their nodes, and lines to those which the
   body interpolates between. */
static void draw_interpolation(page *p, const scene *s, int32_t parent)
{
    const nbody *sim = &s->sim;
    const nbody_cell *c = &sim->cell[parent];
    double const x = (double)sim->x[s->place], y = (double)sim->y[s->place];
    double wx[NBODY_MAX_ORDER], wy[NBODY_MAX_ORDER];
    panel w = next_panel(p, "4 cells of the last level: 8 x 8 nodes in each\nthe body's far force: "
                            "between 2 x 2 of them");
    int32_t const k = sim->rule.side;
    int32_t i, j;
    look_at_cell(&w, s, parent, 1.1);
    lattice_in(&w, s, parent, 2, 4, mix(ink, white, 0.5));
    for (i = 0; i < c->children; i++) draw_nodes(&w, s, c->child + i, 5, level_color(c->level + 1));
    all_bodies(&w, s, mix(ink, white, 0.4));
    body_weights(s, wx, wy);
    for (j = 0; j < k; j++)
        for (i = 0; i < k; i++) {
            vector const at = node_at(sim, s->chain[s->levels - 1], i, j);
            if (wx[i] == 0 || wy[j] == 0) continue;
            draw_line(w.canvas, px(&w, x), py(&w, y), px(&w, at.x), py(&w, at.y), 2, red);
            dot(&w, at.x, at.y, 9, red);
        }
    finish_with_body(&w, s);
}

/* The forces at the nodes of some cells, as arrows. */
static void draw_arrows(page *p, const scene *s, int32_t parent, const char *caption)
{
    const nbody *sim = &s->sim;
    const nbody_cell *c = &sim->cell[parent];
    double const side = side_at(sim, c->level);
    panel w = next_panel(p, "%s", caption);
    int32_t const first = c->child * sim->nodes, last = first + c->children * sim->nodes;
    rgb const color = level_color(c->level + 1);
    double longest = 0;
    int32_t at;
    look_at_cell(&w, s, parent, 1.1);
    lattice_in(&w, s, parent, 2, 4, mix(ink, white, 0.5));
    for (at = first; at < last; at++)
        longest = fmax(longest, hypot((double)sim->fx[at], (double)sim->fy[at]));
    for (at = first; at < last; at++) {
        int32_t const node = at % sim->nodes;
        vector const from =
            node_at(sim, at / sim->nodes, node % sim->rule.side, node / sim->rule.side);
        double const scale = longest > 0 ? 0.45 / sim->rule.side * side / longest : 0;
        double const dx = (double)sim->fx[at] * scale, dy = (double)sim->fy[at] * scale;
        dot(&w, from.x, from.y, 5, color);
        if (inside(&w, from.x + dx, from.y + dy, 4))
            draw_line(w.canvas, px(&w, from.x), py(&w, from.y), px(&w, from.x + dx),
                      py(&w, from.y + dy), 2, mix(color, ink, 0.4));
    }
    finish(&w);
}

static void draw_node_layer(page *p, const scene *s, int32_t level)
{
    int32_t first, k;
    int32_t const cells = cells_at(&s->sim, level, &first);
    double apart;
    panel w;
    printf("   level %ld: %6ld force nodes in %5ld cells\n", (long)level,
           (long)cells * s->sim.nodes, (long)cells);
    w = next_panel(p, "level %ld: %ld force nodes\nin %ld cells", (long)level,
        (long)cells * s->sim.nodes, (long)cells);
    look_at_level(&w, s, level);
    apart = PANEL / w.size * side_at(&s->sim, level) / s->sim.rule.side;
    for (k = first; k < first + cells; k++)
        draw_nodes(&w, s, k, fmax(1.5, fmin(6, 0.25 * apart)), level_color(level));
    grid_of_level(&w, s, level, mix(ink, white, 0.6));
    finish_with_body(&w, s);
}

static void picture_nodes(const scene *s, const char *folder)
{
    static const char text[] =
        "A force node has a fixed place and the mass 1: it samples the field of all that is far "
        "from its cell. Levels 0 "
        "and 1 have none: there all cells touch.\n"
        "An arrow is the force at a node. Within a cell it is smooth, though the bodies are not; "
        "at a border it jumps: "
        "the next cell has other far cells, and what one leaves to near bodies the other does not.";
    int32_t const last = s->levels - 1;
    page p;
    int32_t level;
    printf("\n5_force_nodes: nodes in one layer, and in a hierarchy (Figures 13 and 14)\n");
    if (last < 2) { printf("   none with %ld levels: 3 are needed\n", (long)s->levels); return; }
    p = page_new(s->levels - 2 + 3, "5. Force nodes (Kalms, Figures 13 and 14)");
    draw_interpolation(&p, s, s->chain[last - 1]);
    draw_arrows(&p, s, s->chain[last - 1],
                "the force of all that is far from each cell\nat its nodes");
    for (level = last; level >= 2; level--) draw_node_layer(&p, s, level);
    notes(&p, text);
    page_write(&p, folder, "5_force_nodes");
}

/* ---- the default: cells are divided where bodies crowd ---- */

static void draw_bodies(page *p, const scene *s)
{
    panel w = next_panel(p, "%ld bodies in three clumps\nand a few anywhere", (long)s->n);
    look_through(&w, s, 0, 0, 2 * s->sim.frame->edge);
    all_bodies(&w, s, ink);
    finish_with_body(&w, s);
}

/* The leaves, in a window around the corner of a cell. */
static void draw_leaves(page *p, const scene *s, const char *caption, int32_t around, double size)
{
    const nbody *sim = &s->sim;
    vector const middle = corner_of(sim, around);
    panel w = next_panel(p, "%s", caption);
    int32_t k;
    look_through(&w, s, middle.x, middle.y, size);
    for (k = 0; k < sim->frame->cells; k++)
        if (sim->cell[k].child < 0)
            fill_cell(&w, s, k, mix(white, level_color(sim->cell[k].level), 0.35));
    for (k = 0; k < sim->frame->cells; k++)
        if (sim->cell[k].child < 0) outline_cell(&w, s, k, 3, white);
    all_bodies(&w, s, mix(ink, white, 0.3));
    finish_with_body(&w, s);
}

/* The Chebyshev points of the cell above the body's leaf: what they weigh is also how a node
   would be interpolated. */
static void draw_shares(page *p, const scene *s, int32_t cell)
{
    const nbody *sim = &s->sim;
    int32_t const level = sim->cell[cell].level;
    point source[MOST_NODES];
    char mass[32];
    panel w;
    int32_t k, count = sources_of(sim, cell, source);
    w = next_panel(p, "a cell of level %ld: %ld bodies share out their\nmass to %ld fixed points",
        (long)level, (long)sim->cell[cell].count, (long)count);
    look_at_cell(&w, s, cell, 1.1);
    lattice_in(&w, s, cell, 1, 4, mix(ink, white, 0.5));
    bodies_of(&w, s, cell, 6, mix(ink, white, 0.6));
    draw_points(&w, s, level, source, count, level_color(level));
    for (k = 0; k < count; k++) {
        int const x = (int)px(&w, source[k].x) - 30, y = (int)py(&w, source[k].y) + 14;
        snprintf(mass, sizeof mass, "%.2f", source[k].m * sim->frame->mass);
        draw_box(w.canvas, x - 4, y - 4, x + 3 * stb_easy_font_width(mass) + 2, y + 26, white, 1);
        draw_text(w.canvas, x, y, 3, ink, mass);
    }
    finish(&w);
}

#define LEVEL_KEYS "@2level 2, 8\n@3level 3, 9\n@4level 4, 10\n@5level 5, 11\n" \
                   "@6level 6, 12\n@7level 7, 13"

static void picture_adaptive(const scene *s, const char *folder)
{
    static const char text[] = "The default of nbody.h: a cell is divided while it has too many "
                               "bodies. So clumps get more levels, and voids "
                               "fewer, and a leaf may touch leaves of other sizes.\n"
                               "Virtual particles are here 4 x 4 fixed points (Chebyshev), the "
                               "same places as the nodes. Each body shares out "
                               "its mass to all 16, by the weights with which it will interpolate "
                               "its force. Some are negative (rings); the sum "
                               "is the mass.\n"
                               "White leaves are empty. Gray dots are bodies, the red one is that "
                               "of picture 8; a line begins at its node and shows the force "
                               "there.\n"
                               LEVEL_KEYS;
    nbody_counts counts;
    page p = page_new(s->levels > 2 ? 6 : 4,
                      "7. The default: divided where bodies crowd, 4 x 4 Chebyshev points");
    char caption[PICTURE_TEXT];
    MUST(nbody, nbody_count(&s->sim, &counts), "counting");
    printf("\n7_adaptive: cells are divided where bodies crowd, as by default; leaves of 20\n");
    printf("   %ld cells, %ld of them leaves, on %ld levels; a leaf has up to %ld bodies\n",
           (long)counts.cells, (long)counts.leaves, (long)counts.levels, (long)s->sim.desc.leaf);
    draw_bodies(&p, s);
    say(caption, "%ld leaves on %ld levels\nin the colors of their levels", (long)counts.leaves,
        (long)counts.levels);
    draw_leaves(&p, s, caption, 0, 2 * s->sim.frame->edge);
    say(caption, "the same around\na leaf of level %d",
        (int)s->sim.cell[s->sim.frame->cells - 1].level);
    draw_leaves(&p, s, caption, s->sim.frame->cells - 1,
                24 * side_at(&s->sim, s->sim.frame->levels - 1));
    if (s->levels > 2) {
        draw_shares(&p, s, s->chain[s->levels - 2]);
        draw_arrows(&p, s, s->chain[s->levels - 2],
                    "the force at the nodes of its children\nof all that acts on them");
    }
    notes(&p, text);
    page_write(&p, folder, "7_adaptive");
}

static double picture_adaptive_walk(const scene *s, const char *folder)
{
    static const char text[] =
        "As before, but a leaf may be larger or smaller than those that it touches.\n"
        "A larger leaf that does not touch (framed): its bodies act on the nodes. So do those of a "
        "leaf with fewer bodies "
        "than it would have points.\n"
        "A smaller cell that does not touch, inside one that does: its points act on the bodies "
        "(near).\n"
        LEVEL_KEYS "\n@#near";
    printf("\n8_adaptive_on_nodes: the same walk through that tree\n");
    return picture_walk(s, folder, "8_adaptive_on_nodes", "8. The walk through the adaptive tree",
                        text);
}

/* The body nearest to a place that is not too central. */
static int32_t nearest_place(const nbody *sim, double u, double v)
{
    const nbody_frame *f = sim->frame;
    double least = 1e300;
    int32_t k, found = 0;
    for (k = 0; k < sim->n; k++) {
        double const d = hypot((double)sim->x[k] - f->origin[0] - u * f->edge,
                               (double)sim->y[k] - f->origin[1] - v * f->edge);
        if (d < least) { least = d; found = k; }
    }
    return found;
}

/* In the adaptive tree: a body on which larger leaves and smaller cells act, some levels down. */
static int32_t telling_place(scene *s)
{
    const nbody *sim = &s->sim;
    int32_t k, j, best = 0, most = -1;
    for (k = 0; k < sim->frame->cells; k++) {
        int32_t score = 0, larger = 0, smaller = 0;
        if (sim->cell[k].child >= 0) continue;
        look_at(s, sim->cell[k].first);
        for (j = 0; j < s->actors; j++) {
            larger += s->actor[j].how == FAR_BODIES &&
                      sim->cell[s->actor[j].cell].level < s->actor[j].level;
            smaller += s->actor[j].how == NEAR_SOURCES;
        }
        /* full rows of panels */
        score =
            2 * (larger > 0) + 2 * (smaller > 0) + (s->levels >= 5) + (s->levels % COLUMNS == 2);
        if (score > most) { most = score; best = sim->cell[k].first; }
    }
    return best;
}

static void say_scene(const scene *s, const char *what)
{
    printf("%ld bodies of mass 1, %s; the body looked at: %ld, at (%.6g, %.6g)\n", (long)s->n, what,
           (long)s->id, (double)s->pos[2 * s->id], (double)s->pos[2 * s->id + 1]);
}

static void say_terms(const scene *s, const char *what)
{
    nbody_counts c;
    MUST(nbody, nbody_count(&s->sim, &c), "counting");
    printf("   all bodies, %s: %lld near terms, %lld far, %lld by table; all pairs: %lld\n", what,
           (long long)c.near_terms, (long long)c.far_terms, (long long)c.table_terms,
           (long long)s->n * s->n);
}

#endif /* NBODY_LEVELS_DRAW_H */
