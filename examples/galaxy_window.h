/* galaxy_window.h - the live window of galaxy.c and galaxy.cu: SDL2, where GALAXY_WINDOW is defined; else --window is refused.
   SPDX-License-Identifier: MIT OR Unlicense

   (Debian: libsdl2-dev; make defines GALAXY_WINDOW where pkg-config finds sdl2.) No OpenGL: pictures are copied. */

#ifndef GALAXY_WINDOW_H
#define GALAXY_WINDOW_H

#ifdef GALAXY_WINDOW

#define SDL_MAIN_HANDLED /* main is ours */
#include <SDL.h>

typedef struct galaxy_window {
    SDL_Window *window; /* NULL: none is open */
    int closed;         /* by the user */
    int waits;          /* the space bar stopped the run */
    double next;        /* when the next picture is due */
} galaxy_window;

static void galaxy_window_open(galaxy_window *window, const galaxy_canvas *canvas)
{
    SDL_SetMainReady();
    if (SDL_Init(SDL_INIT_VIDEO) != 0) galaxy_stop(1, "--window: %s", SDL_GetError());
    window->window = SDL_CreateWindow("galaxy", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, canvas->width, canvas->height, 0);
    if (!window->window) galaxy_stop(1, "--window: %s", SDL_GetError());
}

/* Is it time for a picture? `now`: in any case. */
static int galaxy_window_due(const galaxy_window *window, int now)
{
    return window->window && !window->closed && (now || galaxy_now() >= window->next);
}

/* 20 pictures a second, and fewer where `cost`, the seconds that one takes, would slow down the run by more than a fifth. */
static void galaxy_window_show(galaxy_window *window, const galaxy_canvas *canvas, double cost)
{
    SDL_Surface *to = SDL_GetWindowSurface(window->window);
    SDL_Surface *from = SDL_CreateRGBSurfaceWithFormatFrom(canvas->rgb, canvas->width, canvas->height, 24, 3 * canvas->width,
                                                           SDL_PIXELFORMAT_RGB24);
    if (!to || !from || SDL_BlitSurface(from, NULL, to, NULL) != 0 || SDL_UpdateWindowSurface(window->window) != 0)
        galaxy_stop(1, "--window: %s", SDL_GetError());
    SDL_FreeSurface(from);
    window->next = galaxy_now() + (5 * cost > 0.05 ? 5 * cost : 0.05);
}

static void galaxy_window_take(galaxy_window *window, const SDL_Event *event)
{
    if (event->type == SDL_QUIT) window->closed = 1;
    if (event->type != SDL_KEYDOWN) return;
    if (event->key.keysym.sym == SDLK_SPACE) window->waits = !window->waits;
    if (event->key.keysym.sym == SDLK_q || event->key.keysym.sym == SDLK_ESCAPE) window->closed = 1;
}

/* Takes what the user did, and stays here while the run waits. 0: the window was closed. */
static int galaxy_window_poll(galaxy_window *window)
{
    SDL_Event event;
    if (!window->window) return 1;
    do {
        while (SDL_PollEvent(&event)) galaxy_window_take(window, &event);
        if (window->waits) SDL_Delay(20);
    } while (window->waits && !window->closed);
    return !window->closed;
}

/* The end of the run: waits for something to happen. 0: no window to look at. */
static int galaxy_window_wait(galaxy_window *window)
{
    if (!window->window || window->closed) return 0;
    SDL_WaitEventTimeout(NULL, 200);
    return 1;
}

static void galaxy_window_close(galaxy_window *window)
{
    if (!window->window) return;
    SDL_DestroyWindow(window->window);
    SDL_Quit();
}

#else

typedef struct galaxy_window { int none; } galaxy_window;

static void galaxy_window_open(galaxy_window *window, const galaxy_canvas *canvas)
{
    (void)window;
    (void)canvas;
}

static int galaxy_window_due(const galaxy_window *window, int now) { (void)window; (void)now; return 0; }
static void galaxy_window_show(galaxy_window *window, const galaxy_canvas *canvas, double cost)
{
    (void)window;
    (void)canvas;
    (void)cost;
}
static int galaxy_window_poll(galaxy_window *window) { (void)window; return 1; }
static int galaxy_window_wait(galaxy_window *window) { (void)window; return 0; }
static void galaxy_window_close(galaxy_window *window) { (void)window; }

#endif
#endif /* GALAXY_WINDOW_H */
