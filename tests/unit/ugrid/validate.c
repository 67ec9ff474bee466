/* validate.c - a part of test_ugrid.c: ugrid_validate finds damage to each array. That it
   accepts good grids is checked by all other parts.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Each returns 0 where the grid has nothing to damage. `full` is a cell with at least two entries,
   `bare` one with none. */
static int32_t full, bare;

static void find_cells(const ugrid *g)
{
    int32_t cell;
    full = bare = -1;
    for (cell = 0; cell < g->cell_count; cell++) {
        int32_t *list = entries_of(g, cell);
        if (arrlen(list) >= 2 && full < 0) full = cell;
        if (arrlen(list) == 0 && bare < 0) bare = cell;
        arrfree(list);
    }
}

static int32_t *slot_at(const ugrid *g, int32_t cell, int32_t k)
{
    return &g->slot[g->desc.slot_layout == UGRID_SLOTS_BY_ROW ? cell * g->desc.slots + k :
        k * g->cell_count + cell];
}

static int32_t *link_at(const ugrid *g, int32_t entry)
{
    return g->next ? &g->next[entry] : &g->record[entry].link;
}

#define DAMAGE(name, needs, statement) \
    static int name(ugrid *g) { if (!(needs)) return 0; statement; return 1; }
DAMAGE(start_too_late, g->start, g->start[0] = 1)
DAMAGE(start_before_0, g->start, g->start[0] = -1)
DAMAGE(start_one_on, g->start, g->start[full]++)
DAMAGE(start_one_back, g->start && full > 0, g->start[full + 1]--)
DAMAGE(start_ends_early, g->start, g->start[g->cell_count]--)
DAMAGE(start_ends_late, g->start, g->start[g->cell_count]++)
DAMAGE(start_falls, g->start, g->start[full] = g->start[full + 1] + 1)
DAMAGE(start_huge, g->start, g->start[full + 1] = INT32_MAX)
DAMAGE(order_twice, g->start, g->order[g->start[full]] = g->order[g->start[full] + 1])
DAMAGE(order_negative, g->start, g->order[g->start[full]] = -1)
DAMAGE(order_too_high, g->start, g->order[g->start[full]] = g->n * g->spans)
DAMAGE(order_other_cell, g->start,
    { int32_t const last = g->order[g->entries - 1]; g->order[g->entries - 1] = g->order[0];
    g->order[0] = last; })
DAMAGE(inverse_swapped, g->inverse,
    { int32_t const x = g->inverse[0]; g->inverse[0] = g->inverse[1]; g->inverse[1] = x; })
DAMAGE(inverse_negative, g->inverse, g->inverse[g->n - 1] = -1)
DAMAGE(record_moved, g->record, g->record[g->n / 2].x[1] += (real)0.01)
DAMAGE(record_nan, g->record, g->record[0].x[0] = (real)NAN)
DAMAGE(record_z, g->record && g->desc.dim == 3,
    g->record[g->n - 1].x[2] = beside(g->record[g->n - 1].x[2], 1))
DAMAGE(record_wrong_id, g->record && g->start, g->record[0].link = g->record[1].link)
DAMAGE(count_more, g->count, g->count[full]++)
DAMAGE(count_less, g->count, g->count[full]--)
DAMAGE(count_of_nothing, g->count, g->count[bare] = 1)
DAMAGE(count_negative, g->count, g->count[full] = -1)
DAMAGE(count_huge, g->count, g->count[full] = INT32_MAX)
DAMAGE(slot_twice, g->slot, *slot_at(g, full, 0) = *slot_at(g, full, 1))
DAMAGE(slot_negative, g->slot, *slot_at(g, full, 0) = -1)
DAMAGE(slot_too_high, g->slot, *slot_at(g, full, 1) = g->n * g->spans)
DAMAGE(head_lost, g->head, g->head[full] = -1)
DAMAGE(head_skips, g->head, g->head[full] = *link_at(g, g->head[full]))
DAMAGE(head_of_nothing, g->head, g->head[bare] = g->head[full])
DAMAGE(head_too_high, g->head, g->head[bare] = g->n * g->spans)
DAMAGE(head_negative, g->head, g->head[full] = -2)
DAMAGE(next_in_a_circle, g->head, *link_at(g, *link_at(g, g->head[full])) = g->head[full])
DAMAGE(next_itself, g->head, *link_at(g, g->head[full]) = g->head[full])
DAMAGE(next_ends_early, g->head, *link_at(g, g->head[full]) = -1)
DAMAGE(next_too_high, g->head, *link_at(g, g->head[full]) = g->n * g->spans)
DAMAGE(entries_more, 1, g->entries++)
DAMAGE(entries_less, 1, g->entries--)
DAMAGE(first_cell_forgotten, g->head && g->head[0] >= 0, /* and so it is counted */
       { int32_t k = g->head[0]; for (; k >= 0; k = *link_at(g, k)) g->entries--; g->head[0] = -1;
       })

typedef int damage(ugrid *g);

static damage *const damages[] = {
    start_too_late, start_before_0, start_one_on, start_one_back, start_ends_early, start_ends_late,
        start_falls, start_huge,
    order_twice, order_negative, order_too_high, order_other_cell, inverse_swapped,
        inverse_negative, record_moved, record_nan,
    record_z, record_wrong_id, count_more, count_less, count_of_nothing, count_negative, count_huge,
        slot_twice, slot_negative,
    slot_too_high, head_lost, head_skips, head_of_nothing, head_too_high, head_negative,
        next_in_a_circle, next_itself,
    next_ends_early, next_too_high, entries_more, entries_less, first_cell_forgotten,
};

static int current_damage;
static void describe_damage(void)
{
    describe_case();
    print_error("  damage number %d\n", current_damage);
}

/* As build, in memory of that heap. */
static void build_in(ugrid *g, const scene *s, const config *c, heap *h)
{
    ugrid_desc d = desc_of(s, c);
    d.allocator = allocator_of(h);
    d.slots = 8 * s->n;
    CHECK_RESULT(ugrid_build(g, &d, s->pos, 0, s->n), UGRID_OK);
}

static void test_validate_finds_damage(void **state)
{
    config *configs = all_configs();
    int used[COUNT_OF(damages)] = {0};
    /* its memory is filled: what a damaged count makes validate read has a value */
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int bounds, k;
    (void)state;
    dice = wl_seed(25);
    describe = describe_damage;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[4], &inputs[bounds % 2], 40);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            for (k = 0; k < COUNT_OF(damages); k++) {
                current_damage = k;
                build_in(&g, &s, &configs[c], &h);
                find_cells(&g);
                if (full < 0 || bare < 0) break;
                if (!damages[k](&g)) continue;
                used[k] = 1;
                CHECK_RESULT(ugrid_validate(&g), UGRID_INVALID);
            }
            build_in(&g, &s, &configs[c], &h); /* a particle that moved after the build */
            s.pos[0] += s.cell * (real)1.5;
            if (s.bounds < UNBOUNDED) CHECK_RESULT(ugrid_validate(&g), UGRID_INVALID);
            s.pos[0] -= s.cell * (real)1.5;
        }
        forget(&s);
    }
    for (k = 0; k < COUNT_OF(damages); k++) CHECK(used[current_damage = k]);
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}
