/* window.h - a window that shows pictures, by SDL2 where the program is made with it
   (-DGALAXY_WINDOW, -DBOIDS_WINDOW, -DFALLING_BOXES_WINDOW, -DFLUID_WINDOW; Debian:
   libsdl2-dev). No OpenGL: pictures are copied.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_WINDOW_H
#define EXAMPLES_WINDOW_H

#include "picture.h"

#if defined(GALAXY_WINDOW) || defined(BOIDS_WINDOW) || defined(FALLING_BOXES_WINDOW) || \
    defined(FLUID_WINDOW)

#define SDL_MAIN_HANDLED /* main is ours */
#include <SDL.h>

typedef struct window {
    SDL_Window *handle; /* NULL: none is open */
    int closed;         /* by the user */
    int waits;          /* the space bar has stopped the run */
} window;

static inline void window_must_exist(void) {}

static inline void window_open(window *w, const picture *p)
{
    SDL_SetMainReady();
    if (SDL_Init(SDL_INIT_VIDEO) != 0) stop(1, "--window: %s", SDL_GetError());
    w->handle = SDL_CreateWindow(PROGRAM, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, p->width,
                                 p->height, 0);
    if (!w->handle) stop(1, "--window: %s", SDL_GetError());
}

static inline void window_show(const window *w, const picture *p)
{
    SDL_Surface *to = SDL_GetWindowSurface(w->handle);
    SDL_Surface *from = SDL_CreateRGBSurfaceWithFormatFrom(p->rgb, p->width, p->height, 24,
                                                           3 * p->width, SDL_PIXELFORMAT_RGB24);
    if (!to || !from || SDL_BlitSurface(from, NULL, to, NULL) != 0 ||
        SDL_UpdateWindowSurface(w->handle) != 0)
        stop(1, "--window: %s", SDL_GetError());
    SDL_FreeSurface(from);
}

/* The next key that was pressed, 0 = none. Space stops and goes on, q and escape close. */
static inline int window_key(window *w)
{
    SDL_Event event;
    while (w->handle && SDL_PollEvent(&event)) {
        if (event.type == SDL_QUIT) w->closed = 1;
        if (event.type != SDL_KEYDOWN) continue;
        if (event.key.keysym.sym == SDLK_SPACE) w->waits = !w->waits;
        if (event.key.keysym.sym == SDLK_q || event.key.keysym.sym == SDLK_ESCAPE) w->closed = 1;
        return (int)event.key.keysym.sym;
    }
    return 0;
}

/* 0: it is not over the window. */
static inline int window_mouse(const window *w, int *x, int *y)
{
    if (SDL_GetMouseFocus() != w->handle) return 0;
    SDL_GetMouseState(x, y);
    return 1;
}

/* The button held down: 1 left, 2 right, 0 none. */
static inline int window_buttons(void)
{
    Uint32 const buttons = SDL_GetMouseState(NULL, NULL);
    return buttons & SDL_BUTTON_LMASK ? 1 : buttons & SDL_BUTTON_RMASK ? 2 : 0;
}

static inline void window_pause(int milliseconds) { SDL_Delay((Uint32)milliseconds); }

static inline void window_close(window *w)
{
    if (!w->handle) return;
    SDL_DestroyWindow(w->handle);
    SDL_Quit();
}

#else

typedef struct window { const void *handle; int closed, waits; } window;

static inline void window_must_exist(void)
{
    stop(2, "--window: this program was made without SDL2 (Debian: libsdl2-dev)");
}
static inline void window_open(window *w, const picture *p) { (void)w; (void)p; }
static inline void window_show(const window *w, const picture *p) { (void)w; (void)p; }
static inline int window_key(window *w) { (void)w; return 0; }
static inline int window_mouse(const window *w, int *x, int *y)
{
    (void)w; (void)x; (void)y;
    return 0;
}
static inline int window_buttons(void) { return 0; }
static inline void window_pause(int milliseconds) { (void)milliseconds; }
static inline void window_close(window *w) { (void)w; }

#endif
#endif /* EXAMPLES_WINDOW_H */
