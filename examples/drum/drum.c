/* drum.c - spheres in a rotating drum with lifters, read from an STL file.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation of particles that rub (DEM) uses ugrid.h, lbvh.h and nlist.h
   together. In every time step

       1. move         each sphere moves under the forces at its place,
       2. sort         now and then: all data into the order of the cells, and the lists follow,
       3. triangles    the drum turns, and the tree over its triangles is refitted,
       4. collect      a grid finds the spheres near each sphere, the tree the triangles: two lists;
                       contacts keep their history,
       5. forces       every entry of both lists adds force and torque (dem.h).

   How to run it (about 20 seconds):

       make build/drum && build/drum --demo            (from the top of the repository), or
       cc -O3 examples/drum/drum.c -o drum -lstb -lm
       ./drum -n 20000 --length 0.5 --frames 50 --vtk --out pictures

   What to look at: >>sort, >>collect, >>forces and >>step below, 110 lines in all. The force of
   a contact is dem_law in common/dem.h. drum.cu is the same program on a GPU. */

#define PROGRAM "drum"
#include "../common/base.h"

#ifndef UGRID_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#define LBVH_IMPLEMENTATION
#define NLIST_IMPLEMENTATION
#endif
#include "drum_serial.h"

/* -------------------------------------------------------------------------------------------------
   >>sort: spheres in the order of the cells; both lists, which name spheres by index, follow
   ---------------------------------------------------------------------------------------------- */

static void drum_grid(drum_serial *run)
{
    MUST(ugrid, ugrid_build(&run->grid, &run->grid_desc, run->state.pos, DEM_STRIDE, run->state.n),
         "building the grid");
}

static void drum_sort(drum_serial *run)
{
    drum_state const old = run->state;
    drum_grid(run);
    MUST(ugrid, ugrid_gather(&run->grid, old.pos, DEM_STRIDE, run->spare.pos), "sorting positions");
    MUST(ugrid, ugrid_gather(&run->grid, old.vel, DEM_STRIDE, run->spare.vel),
         "sorting velocities");
    MUST(ugrid, ugrid_gather(&run->grid, old.spin, DEM_STRIDE, run->spare.spin), "sorting spins");
    MUST(ugrid, ugrid_gather(&run->grid, old.id, sizeof *old.id, run->spare.id), "sorting ids");
    MUST(nlist, nlist_remap(&run->pairs, run->grid.inverse, old.n),
         "renaming spheres in the list of pairs");
    MUST(nlist, nlist_remap(&run->walls, run->grid.inverse, old.n),
         "renaming spheres in the list of triangles");
    run->state = run->spare;
    run->spare = old;
    drum_use(run);
}

/* -------------------------------------------------------------------------------------------------
   >>collect
   ---------------------------------------------------------------------------------------------- */

/* The triangles of the turned drum stay neighbours, so the tree is still a good one
   once its boxes are new. */
static void drum_triangles(drum_serial *run)
{
    drum_turn_mesh(run->mesh, run->omega_dt * (double)run->step);
    MUST(lbvh, lbvh_refit(&run->tree, run->mesh->now, 0), "refitting the tree");
}

static void drum_collect_triangles(drum_serial *run)
{
    MUST(nlist,
         nlist_build_mesh(&run->walls, &run->walls_desc, &run->tree, &run->system.mesh,
                          run->state.pos, DEM_STRIDE, run->state.n),
         "collecting triangles");
}

/* With a skin the last list serves until a sphere has moved by half of it. */
static int drum_needs_pairs(const drum_serial *run)
{
    int32_t moved = 1;
    if (run->pairs_desc.skin > 0)
        MUST(nlist, nlist_moved(&run->pairs, run->state.pos, DEM_STRIDE, &moved), "the skin");
    return moved;
}

static void drum_collect_spheres(drum_serial *run)
{
    MUST(nlist,
         nlist_build_ugrid(&run->pairs, &run->pairs_desc, &run->grid, run->state.pos, DEM_STRIDE,
                           run->state.n),
         "collecting spheres");
}

/* -------------------------------------------------------------------------------------------------
   >>forces
   ---------------------------------------------------------------------------------------------- */

static void drum_push_triangles(drum_serial *run)
{
    memset(run->state.sums, 0, (size_t)run->state.n * DEM_SUMS * sizeof(float));
    MUST(nlist, nlist_sum(&run->walls, &run->wall_sums, dem_triangle_fn, &run->system,
                          run->state.sums), "forces of the drum");
}

static void drum_push_spheres(drum_serial *run)
{
    MUST(nlist, nlist_sum(&run->pairs, &run->pair_sums, dem_spheres_fn, &run->system,
                          run->state.sums), "forces of spheres");
}

static void drum_move(drum_serial *run)
{
    int32_t i;
    for (i = 0; i < run->state.n; i++)
        dem_move(&run->system, i, run->state.sums + DEM_SUMS * (size_t)i);
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* Lists and forces for the spheres as they lie. */
static void drum_look_around(drum_serial *run, double *last)
{
    int const needs_pairs = drum_needs_pairs(run);
    drum_triangles(run);
    drum_count(run, DRUM_TRIANGLES, last);
    if (needs_pairs) drum_grid(run);
    drum_count(run, DRUM_GRID, last);
    drum_collect_triangles(run);
    drum_count(run, DRUM_FIND_TRIANGLES, last);
    if (needs_pairs) drum_collect_spheres(run);
    drum_count(run, DRUM_FIND_SPHERES, last);
    drum_push_triangles(run);
    drum_count(run, DRUM_PUSH_TRIANGLES, last);
    drum_push_spheres(run);
    drum_count(run, DRUM_PUSH_SPHERES, last);
}

static void drum_step(drum_serial *run)
{
    double const start = seconds_now();
    double last = start;
    run->step++;
    drum_move(run);
    drum_count(run, DRUM_MOVE, &last);
    if (drum_sorts(run->options, run->step)) {
        drum_sort(run);
        run->sorts++;
        drum_count(run, DRUM_SORT, &last);
    }
    drum_look_around(run, &last);
    run->spent.step += last - start;
    run->counted++;
}

/* ---- for drum_run in drum_run.h ---- */

static void drum_serial_advance(void *user, int32_t steps)
{
    while (steps-- > 0) drum_step((drum_serial *)user);
}

#ifndef __CUDACC__ /* drum.cu checks its steps against those above */
/* Lists and forces of the first step: made, or from the file. */
static void drum_begin(drum_serial *run, const drum_setup *setup, const drum_saved *start)
{
    double ignored = seconds_now();
    if (start->list[0]) {
        drum_load_list(&run->pairs, &run->pairs_desc, setup, start, 0);
        drum_load_list(&run->walls, &run->walls_desc, setup, start, 1);
    } else {
        drum_look_around(run, &ignored);
    }
    memset(&run->spent, 0, sizeof run->spent);
}

int main(int argc, char **argv)
{
    drum_options const options = drum_parse(argc, argv);
    drum_setup setup = drum_setup_new(&options);
    drum_saved start = drum_first(&options, &setup);
    drum_serial run = drum_serial_new(&options, &setup, &start.state, start.step);
    drum_engine const engine = {
        &run, 1, drum_serial_advance, drum_serial_look, drum_serial_pairs, drum_serial_walls,
        drum_serial_entries, drum_serial_times};
    drum_begin(&run, &setup, &start);
    drum_run(&options, &setup, &engine, (int32_t)start.step);
    drum_finish(&options, &setup, &engine);
    drum_serial_free(&run);
    drum_saved_free(&start);
    drum_mesh_free(&setup.mesh);
    return 0;
}

#endif
