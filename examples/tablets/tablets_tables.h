/* tablets_tables.h - --tables FILE: what tables 6.4, 6.5, 6.9 and 6.11, section 6.3.6 and figure
   6.10 of source 004 (Kureck) show, as lines of a CSV file.
   SPDX-License-Identifier: MIT OR Unlicense

   A part of tablets.cu: included in its namespace. Begin with a state of --save: tablets that have
   settled in a box, or a drum that has turned.

   >>rows      lines as tests/bench/bench.h has them
   >>lists     a layout of the list, with history or without
   >>slots     box: lists of 0 to 16 slots, forces by entry and by tablet; and no list
   >>orders    drum: sorted and not, part by part, and over time
   >>history   drum: what it costs to keep contacts */

#ifndef TABLETS_TABLES_H
#define TABLETS_TABLES_H

/* -------------------------------------------------------------------------------------------------
   >>rows
   ---------------------------------------------------------------------------------------------- */

struct tablets_table {
    tablets_gpu *run;
    FILE *file;
    char workload[32];
};

const char tablets_heading[] = "program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,"
                               "value,unit,base_ms,bar_ratio";

void tablets_put(const tablets_table *t, const char *group, const char *workload,
                 const char *method, double ms, double peer_ms, double value, const char *unit)
{
    fprintf(t->file, "tablets,%s,%s,\"%s\",%ld,%.6g,0,0,0,%.6g,%.6g,%s,0,0\n", group, workload,
            method, static_cast<long>(t->run->bodies.base.n), ms, peer_ms, value, unit);
    printf("%s %s %-44s %10.4f ms  source %8.4g  %.4g %s\n", group, workload, method, ms, peer_ms,
           value, unit);
    fflush(stdout);
}

/* The source's number for a method, 0: none. */
struct tablets_told { const char *method; double ms; };

template <size_t count> double tablets_peer(const tablets_told (&told)[count], const char *method)
{
    for (const tablets_told &one : told)
        if (strcmp(one.method, method) == 0) return one.ms;
    return 0;
}

/* The median of some rounds of `work`, in ms; the first round does not count. */
template <class Work> double tablets_ms(tablets_gpu *run, Work work)
{
    enum { ROUNDS = 7 };
    int const rounds = run->bodies.base.n > 4000000 ? 3 : ROUNDS;
    double spent[ROUNDS];
    for (int round = -1; round < rounds; round++) {
        run->events.record(0, run->stream);
        work();
        run->events.record(1, run->stream);
        gpu_wait(run->stream);
        if (round >= 0) spent[round] = 1e3 * run->events.seconds(0, 1);
    }
    return median(spent, rounds);
}

/* -------------------------------------------------------------------------------------------------
   >>lists
   ---------------------------------------------------------------------------------------------- */

/* A list without a skin, made in every step as in the source; the first build takes memory. */
void tablets_choose(tablets_gpu *run, nlist_layout layout, int32_t width, bool history)
{
    nlist_cuda_free(&run->pairs);
    run->desc.layout = layout;
    run->desc.width = width;
    run->desc.skin = 0;
    run->desc.if_moved = 0;
    run->desc.capacity = 0;
    run->desc.history = history ? DEM_BODY_HISTORY : 0;
    run->bodies.base.history_off = !history;
    run->host->cells.cell = run->desc.radius;
    tablets_grid(run);
    run->desc.grow = 1;
    tablets_collect(run);
    run->desc.grow = 0;
    run->desc.capacity = run->pairs.device.list.rows[run->pairs.device.list.current].capacity;
}

double tablets_pairs_each(const tablets_gpu *run)
{
    return static_cast<double>(run->pairs.device.list.total) / run->bodies.base.n;
}

/* -------------------------------------------------------------------------------------------------
   >>slots: tables 6.4 and 6.5
   ---------------------------------------------------------------------------------------------- */

const int32_t tablets_widths[] = {0, 1, 2, 4, 8, 16};
enum { TABLETS_WIDTHS = 6 };
struct tablets_slots { double search, contact, particle, rest, steps_contact, steps_particle; };

/* A GTX Titan X (Maxwell): ms and steps/s; of search and forces in one kernel, steps/s. */
const tablets_slots tablets_told_1m[TABLETS_WIDTHS] = {
    {2.88, 0, 0, 8.6, 68, 68},        {2.87, 1.36, 1.4, 7.28, 67, 67},
    {2.84, 2.55, 2.65, 5.9, 68, 67},  {2.72, 5.05, 5.25, 3.22, 69, 68},
    {2.5, 9.5, 10.25, 0.67, 61, 59},  {2.48, 17.7, 12, 0, 41, 55}};
const tablets_slots tablets_told_10m[TABLETS_WIDTHS] = {
    {29, 0, 0, 88, 7.37, 7.37},   {29.5, 13.5, 13.7, 76, 7.22, 7.21},
    {29, 25, 26, 62, 7.32, 7.31}, {28, 49, 51, 47, 6.91, 6.84},
    {26, 92, 100, 8, 6.7, 6.43},  {26, 175, 118, 0, 4.41, 6}};
const double tablets_told_old[2] = {8.63, 0.91};

/* Forces of the list as it is. */
double tablets_force_ms(tablets_gpu *run, nlist_mode mode)
{
    run->mode = mode;
    return tablets_ms(run, [&] { tablets_push(run); });
}

/* The slots alone: rows of a STATIC list that are too short hold what the slots of a HYBRID one
   do. */
double tablets_slots_ms(tablets_gpu *run, int32_t width, nlist_mode mode)
{
    nlist_cuda_free(&run->pairs);
    run->desc.layout = NLIST_STATIC;
    tablets_collect(run);
    double const ms = tablets_force_ms(run, mode);
    run->desc.layout = NLIST_HYBRID;
    run->desc.width = width;
    return ms;
}

double tablets_steps_ms(tablets_gpu *run, int32_t width, nlist_mode mode)
{
    tablets_choose(run, NLIST_HYBRID, width, false);
    run->mode = mode;
    return tablets_ms(run, [&] { tablets_step(run); });
}

void tablets_put_slots(const tablets_table *t, const char *what, int32_t width, double ms,
                       double peer_ms)
{
    char method[80];
    snprintf(method, sizeof method, "%s, width %d", what, static_cast<int>(width));
    tablets_put(t, "slots", t->workload, method, ms, peer_ms, 0, "");
}

/* The row of one width. The rest: what the whole takes beyond its slots, by REDUCE, which is the
   source's thread per contact (sections 5.1 and 6.3.1). */
void tablets_width(const tablets_table *t, int32_t width, const tablets_slots *told)
{
    tablets_gpu *run = t->run;
    tablets_choose(run, width ? NLIST_HYBRID : NLIST_DYNAMIC, width, false);
    double const search = tablets_ms(run, [&] { tablets_collect(run); }),
                 whole = tablets_force_ms(run, NLIST_REDUCE),
                 reduce = width ? tablets_slots_ms(run, width, NLIST_REDUCE) : 0,
                 contact = width ? tablets_slots_ms(run, width, NLIST_PER_CONTACT) : 0,
                 particle = width ? tablets_slots_ms(run, width, NLIST_PER_PARTICLE) : 0;
    tablets_put_slots(t, "search", width, search, told ? told->search : 0);
    tablets_put_slots(t, "slots, PER_CONTACT", width, contact, 0);
    tablets_put_slots(t, "slots, PER_PARTICLE", width, particle, told ? told->particle : 0);
    tablets_put_slots(t, "slots, REDUCE", width, reduce, told ? told->contact : 0);
    tablets_put_slots(t, "rest, REDUCE (whole - slots)", width,
                      whole > reduce ? whole - reduce : 0, told ? told->rest : 0);
    const struct { const char *name; nlist_mode mode; double told; } steps[] = {
        {"steps/s, PER_CONTACT", NLIST_PER_CONTACT, 0},
        {"steps/s, PER_PARTICLE", NLIST_PER_PARTICLE, told ? told->steps_particle : 0},
        {"steps/s, REDUCE", NLIST_REDUCE, told ? told->steps_contact : 0}};
    for (const auto &one : steps)
        tablets_put_slots(t, one.name, width, tablets_steps_ms(run, width, one.mode),
                          one.told > 0 ? 1e3 / one.told : 0);
}

/* Search and forces in one kernel, as the source had it before its lists; and all else of a
   step. */
void tablets_search(tablets_gpu *run)
{
    gpu_launch(run->stream, run->bodies.base.n, tablets_search_kernel, run->grid.device,
               run->bodies, run->desc.radius, run->sums);
}

void tablets_step_without_list(tablets_gpu *run)
{
    scene *s = run->host;
    if (s->kind == SCENE_DRUM)
        place_drum(s, s->omega * static_cast<double>(s->bodies.base.dt) *
                          static_cast<double>(s->step));
    tablets_turn(run);
    tablets_grid(run);
    tablets_find_walls(run);
    tablets_search(run);
    tablets_push_walls(run);
    tablets_move(run);
    s->step++;
}

void tablets_all_slots(tablets_table *t)
{
    tablets_gpu *run = t->run;
    int32_t const n = run->bodies.base.n;
    const tablets_slots *told = n == 1000000    ? tablets_told_1m
                                : n == 10000000 ? tablets_told_10m : nullptr;
    snprintf(t->workload, sizeof t->workload, "box-%ldM", static_cast<long>(n / 1000000));
    tablets_sort(run);
    for (int k = 0; k < TABLETS_WIDTHS; k++)
        tablets_width(t, tablets_widths[k], told ? &told[k] : nullptr);
    tablets_choose(run, NLIST_DYNAMIC, 0, true);
    run->mode = NLIST_AUTO;
    double const kept = tablets_ms(run, [&] { tablets_step(run); });
    tablets_put(t, "slots", t->workload, "pairs+normal: whole step", kept, 0, 0, "");
    double const old = tablets_ms(run, [&] { tablets_step_without_list(run); });
    tablets_put(t, "slots", t->workload, "without a list: whole step", old,
                told ? 1e3 / tablets_told_old[n > 1000000] : 0, 0, "");
    tablets_put(t, "slots", t->workload, "neighbours", 0, 0, 2 * tablets_pairs_each(run),
                "of each");
}

/* -------------------------------------------------------------------------------------------------
   >>orders: tables 6.9 and 6.11, figure 6.10
   ---------------------------------------------------------------------------------------------- */

struct tablets_order {
    const char *name;
    int32_t every;      /* 0: never again */
    bool sorted;        /* before the first step */
};
const tablets_order tablets_orders[] = {
    {"never sorted", 0, false}, {"sorted every step", 1, true}, {"sorted every 10 steps", 10, true},
    {"sorted every 100 steps", 100, true}, {"sorted once", 0, true}};

/* "Integration about 8 ms, the grid 11 to 13 ms"; triangles take 2 ms to prepare, ours do not
   move. */
const char *const tablets_part_names[PARTS] = {
    "sort", "grid", "collect triangle neighbours", "collect tablet neighbours", "forces tablets",
    "forces triangles", "integrate"};
const tablets_told tablets_told_sorted[] = {
    {"grid", 12}, {"collect triangle neighbours", 10.8}, {"collect tablet neighbours", 24},
    {"forces tablets", 63}, {"forces triangles", 4.3}, {"integrate", 8},
    {"whole step", 1e3 / 7.9}, {"search and forces in one kernel", 1051}};
const tablets_told tablets_told_unsorted[] = {
    {"grid", 12}, {"collect triangle neighbours", 14}, {"collect tablet neighbours", 248},
    {"forces tablets", 428}, {"forces triangles", 5.1}, {"integrate", 8},
    {"whole step", 1e3 / 1.4}, {"search and forces in one kernel", 1130}};

double tablets_order_told(const tablets_gpu *run, const tablets_order *order, const char *method)
{
    if (run->bodies.base.n != 10000000) return 0;
    if (!order->sorted) return tablets_peer(tablets_told_unsorted, method);
    return order->every == 1 ? tablets_peer(tablets_told_sorted, method) : 0;
}

/* A number of steps, of which the one in the middle is timed part by part: ms a step. */
double tablets_some_steps(tablets_gpu *run, int32_t steps)
{
    run->events.record(0, run->stream);
    for (int32_t k = 0; k < steps; k++) {
        run->in_parts = k == steps / 2;
        tablets_step(run);
    }
    run->in_parts = false;
    run->events.record(1, run->stream);
    tablets_inspect(run);
    return 1e3 * run->events.seconds(0, 1) / steps;
}

/* Adds the parts of the last step that was timed, in parts of `points`. */
void tablets_add_parts(const tablets_gpu *run, double ms[PARTS], int points)
{
    for (int k = 0; k < PARTS; k++) ms[k] += 1e3 * run->parts.seconds(k, k + 1) / points;
}

/* What is no part of every step: one sort, of tablets as they lie. */
double tablets_sort_ms(tablets_gpu *run, const tablets_order *order)
{
    if (!order->every) return 0;
    run->events.record(0, run->stream);
    tablets_sort(run);
    run->events.record(1, run->stream);
    gpu_wait(run->stream);
    return 1e3 * run->events.seconds(0, 1);
}

void tablets_put_parts(const tablets_table *t, const char *group, const char *name,
                       const double ms[PARTS], double whole, const tablets_order *order)
{
    char method[120];
    for (int k = 0; k < PARTS; k++) {
        snprintf(method, sizeof method, "%s: %s", name, tablets_part_names[k]);
        if (k != PART_SORT || order->every > 0)
            tablets_put(t, group, "stages", method, ms[k],
                        tablets_order_told(t->run, order, tablets_part_names[k]), 0, "");
    }
    snprintf(method, sizeof method, "%s: whole step", name);
    tablets_put(t, group, "stages", method, whole, tablets_order_told(t->run, order, "whole step"),
                0, "");
}

/* A curve of figure 6.10: points of so many steps. */
void tablets_curve(const tablets_table *t, const tablets_order *order)
{
    enum { POINTS = 20 };
    tablets_gpu *run = t->run;
    tablet_options own = *run->host->options;
    int32_t const stride = own.tables_steps / POINTS > 0 ? own.tables_steps / POINTS : 1;
    int64_t const begin = run->host->step;
    double parts[PARTS] = {}, whole = 0;
    char method[120];
    const tablet_options *before = run->host->options;
    own.sort_every = order->every;
    run->host->options = &own;
    if (order->sorted) tablets_sort(run);
    for (int k = 0; k < POINTS; k++) {
        double const ms = tablets_some_steps(run, stride),
                     seconds = static_cast<double>(run->host->bodies.base.dt) *
                               static_cast<double>(run->host->step - begin);
        tablets_add_parts(run, parts, POINTS);
        whole += ms / POINTS;
        snprintf(method, sizeof method, "%s: step", order->name);
        tablets_put(t, "orders", "time", method, ms, 0, seconds, "s");
    }
    parts[PART_SORT] = tablets_sort_ms(run, order);
    tablets_put_parts(t, "orders", order->name, parts, whole, order);
    snprintf(method, sizeof method, "%s: search and forces in one kernel", order->name);
    tablets_grid(run);
    tablets_put(t, "orders", "stages", method, tablets_ms(run, [&] { tablets_search(run); }),
                tablets_order_told(run, order, "search and forces in one kernel"), 0, "");
    run->host->options = before;
}

void tablets_all_orders(const tablets_table *t)
{
    tablets_gpu *run = t->run;
    tablets_choose(run, NLIST_DYNAMIC, 0, false);
    for (const tablets_order &order : tablets_orders) tablets_curve(t, &order);
    tablets_put(t, "orders", "memory", "all: entries of the list of pairs", 0, 0,
                tablets_pairs_each(run), "of each");
    tablets_put(t, "orders", "memory", "all: tablets at the drum", 0, 0,
                run->host->touched.rows[run->host->touched.now], "of all");
    size_t free = 0, total = 0;
    gpu_must(cudaMemGetInfo(&free, &total), "asking for memory");
    tablets_put(t, "orders", "memory", "all: GPU memory in use", 0, 0,
                static_cast<double>(total - free) / 1048576, "MiB");
}

/* -------------------------------------------------------------------------------------------------
   >>history: section 6.3.6, sorted every 100 steps
   ---------------------------------------------------------------------------------------------- */

void tablets_with(const tablets_table *t, const char *name, bool history)
{
    tablets_gpu *run = t->run;
    tablets_order const order = {name, 100, true};
    tablet_options own = *run->host->options;
    const tablet_options *before = run->host->options;
    double parts[PARTS] = {}, whole = 0;
    int const rounds = 4;
    int32_t const steps = own.tables_steps / rounds;
    own.sort_every = 100;
    run->host->options = &own;
    tablets_choose(run, NLIST_DYNAMIC, 0, history);
    run->mode = NLIST_AUTO;
    tablets_sort(run);
    tablets_some_steps(run, steps);
    for (int k = 0; k < rounds; k++) {
        whole += tablets_some_steps(run, steps) / rounds;
        tablets_add_parts(run, parts, rounds);
    }
    parts[PART_SORT] = tablets_sort_ms(run, &order);
    tablets_put_parts(t, "history", name, parts, whole, &order);
    run->host->options = before;
}

void tablets_tables(tablets_gpu *run, const char *path)
{
    out_file const out = create_file(path);
    tablets_table t = {run, out.file, ""};
    fprintf(out.file, "%s\n", tablets_heading);
    if (run->host->kind == SCENE_BOX) tablets_all_slots(&t);
    else {
        tablets_all_orders(&t);
        tablets_with(&t, "without history", false);
        tablets_with(&t, "with history", true);
    }
    close_file(&out);
}

#endif /* TABLETS_TABLES_H */
