/* falling_boxes.c - boxes fall and pile up; the mouse drags them (left button) and deletes them
   (right button). Over them: what the broad phase knows.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: lbvh_world in a small game. Each frame tells the world where the boxes are now,
   updates it, and walks the pairs that overlap. An outline is a stored box, larger than the box
   and longer in the direction of motion; a line joins the two boxes of a pair, the redder the
   longer the pair lasts, which the bytes kept with it count. The text says what the update did.

   How to run it:

       make build/falling_boxes && build/falling_boxes --window     (from the top of the repository)
       cc -O3 examples/falling_boxes/falling_boxes.c -o falling_boxes -lstb -lm
       (with -DFALLING_BOXES_WINDOW $(pkg-config --cflags --libs sdl2): --window)
       ./falling_boxes --frames 200 --png boxes.png

   What to look at: >>frame in falling_boxes.h. docs/start-game.md explains the calls. */

#define PROGRAM "falling_boxes"
#include "falling_boxes.h"
#include "../common/options.h"
#include "../common/window.h"

/* ---- picture -------------------------------------------------------------------------------- */

static void draw_boxes(const game *g, picture *p)
{
    rgb const moving = rgb_of(0.35, 0.55, 0.8), fixed = gray(0.55), stored = rgb_of(0.7, 0.8, 0.65);
    int k;
    for (k = 0; k < g->count; k++) {
        const box *b = &g->boxes[k];
        const lbvh_node *fat;
        float c[4];
        if (!b->id) continue;
        fat = &g->world.box[2 * (b->id & 0xFFFFFFFFu) + 1];
        corners(b, c);
        draw_box(p, (int)c[0], (int)c[1], (int)c[2], (int)c[3],
                 k == g->held ? rgb_of(0.9, 0.6, 0.1) : b->fixed ? fixed : moving, 0.8);
        if (!b->fixed)
            draw_frame(p, (int)fat->min[0], (int)fat->min[1], (int)fat->max[0], (int)fat->max[1], 1,
                       stored);
    }
}

static void draw_pairs(const game *g, picture *p)
{
    lbvh_pair_walk walk = lbvh_world_pairs(&g->world, LBVH_TIGHT);
    while (lbvh_next_pair(&walk)) {
        const box *a = &g->boxes[walk.user_a], *b = &g->boxes[walk.user_b];
        double const age = fmin(*(int *)walk.data / 100.0, 1);
        if (a->fixed || b->fixed) continue;
        draw_line(p, a->x, a->y, b->x, b->y, 1, mix(rgb_of(1, 0.8, 0.2), rgb_of(0.8, 0, 0), age));
    }
}

static void draw(const game *g, picture *p)
{
    static const char *const reasons[] = {"nothing", "refit", "replaced", "rebuilt"};
    const lbvh_world *w = &g->world;
    char text[PICTURE_TEXT];
    draw_box(p, 0, 0, WIDTH, HEIGHT, gray(0.97), 1);
    draw_boxes(g, p);
    draw_pairs(g, p);
    snprintf(text, sizeof text, "%d boxes   update: %s, %d searched", (int)w->objects,
             reasons[w->reason], (int)w->searched);
    draw_text(p, 20, 12, 2, gray(0.1), text);
    snprintf(text, sizeof text, "pairs: %d stored, %d touch, %d began, %d ended", (int)w->pairs,
             g->touching, (int)w->begun_count, (int)w->ended_count);
    draw_text(p, 20, 36, 2, gray(0.1), text);
}

/* ---- run ------------------------------------------------------------------------------------ */

static void read_options(game *g, int argc, char **argv)
{
    const option_line table[] = {
        INT("-n", "N", &g->boxes_wanted, 0, MOST - 3, "boxes (400)"),
        INT("--frames", "N", &g->frames, 1, 1e9, "ends after so many (600; in a window: never)"),
        FLAG("--window", &g->window, "shows them; left button: drag, right: delete, q: quit"),
        INT("--hand", "X Y", g->hand, 0, 4000, "a mouse at this pixel, in every frame"),
        INT("--button", "B", &g->hand[2], 0, 2, "which holds down 1: left, 2: right (0)"),
        FLAG("--check", &g->check, "compares the pairs of every frame with all pairs of boxes"),
        TEXT("--png", "FILE", &g->png, "a picture of the last frame"),
        OPTIONS_END};
    (void)options_read(argc, argv, table, NULL, "Boxes fall, by lbvh_world.",
                       "falling_boxes --window");
    if (g->window) window_must_exist();
}

static void print_figures(const game *g, int frames)
{
    double lowest = 0, held_y = g->held >= 0 ? (double)g->boxes[g->held].y : -1;
    int k;
    for (k = 3; k < g->count; k++)
        if (g->boxes[k].id) lowest = fmax(lowest, (double)(g->boxes[k].y + g->boxes[k].half_y));
    printf("figures: frames %d objects %d pairs %d touching %d lowest %.1f held %d held_y %.1f "
           "wrong %d\n", frames, (int)g->world.objects, (int)g->world.pairs, g->touching, lowest,
           g->held, held_y, g->wrong);
}

int main(int argc, char **argv)
{
    static game g;
    window screen;
    picture p = picture_new(WIDTH, HEIGHT, gray(1));
    int k;
    memset(&screen, 0, sizeof screen);
    g.boxes_wanted = 400;
    read_options(&g, argc, argv);
    set_up(&g);
    if (g.window) window_open(&screen, &p);
    for (k = 0; !screen.closed && k < (g.frames ? g.frames : g.window ? INT32_MAX : 600);) {
        while (window_key(&screen)) {}
        if (g.window && !g.hand[2]) {
            int x = 0, y = 0;
            int const button = window_mouse(&screen, &x, &y) ? window_buttons() : 0;
            use_hand(&g, x, y, button);
        } else use_hand(&g, g.hand[0], g.hand[1], g.hand[2]);
        if (!screen.waits) frame(&g), k++;
        if (!g.window) continue;
        draw(&g, &p);
        window_show(&screen, &p);
        window_pause(g.frames ? 0 : 16);
    }
    draw(&g, &p);
    if (g.png) picture_save(&p, g.png);
    print_figures(&g, k);
    window_close(&screen);
    lbvh_world_free(&g.world);
    picture_free(&p);
    return g.wrong ? 1 : 0;
}
