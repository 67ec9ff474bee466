/* settings.c - a part of test_nbody.c: the methods and orders that the tests run, and the error
   that each may have.
   SPDX-License-Identifier: MIT OR Unlicense */

#define VP NBODY_VIRTUAL_PARTICLES
#define FN NBODY_FORCE_NODES
#define CENTRES NBODY_MASS_CENTRES
#define POINTS NBODY_CHEBYSHEV

/* The last number: of all inputs and trees that were tried, the largest error of any body's force,
   as a share of S, and half as much again (in double). It comes from few heavy bodies at the worst
   places of their cells. */
static const oracle_setting settings[] = {
    {"VP", VP, 1, CENTRES, 8, 1e-3},          {"VP, 4 x 4", VP, 1, CENTRES, 4, 4e-3},
    {"VP, 2 x 2", VP, 1, CENTRES, 2, 3e-2},   {"VP, moments", VP, 2, CENTRES, 8, 4e-5},
    {"VP, moments, 4 x 4", VP, 2, CENTRES, 4, 8e-4},
    {"VP, moments, 2 x 2", VP, 2, CENTRES, 2, 6e-3},
    {"FN8", FN, 1, CENTRES, 8, 2.5e-2},       {"FN4c", FN, 4, CENTRES, 8, 1.1e-2},
    {"FN5c, 4 x 4", FN, 5, CENTRES, 4, 4e-3}, {"C2", FN, 2, POINTS, 0, 3e-1},
    {"C3", FN, 3, POINTS, 0, 6e-2},           {"C4", FN, 4, POINTS, 0, 1.1e-2},
    {"C5", FN, 5, POINTS, 0, 2.2e-3},         {"C6", FN, 6, POINTS, 0, 5e-4},
    {"C7", FN, 7, POINTS, 0, 1e-4},           {"C8", FN, 8, POINTS, 0, 2.6e-5},
    {"C10", FN, 10, POINTS, 0, 1e-6},         {"C12", FN, 12, POINTS, 0, 1e-7},
};

enum { S_VP, S_VP_4, S_VP_2, S_MOMENTS, S_MOMENTS_4, S_MOMENTS_2, S_FN8, S_FN4C, S_C4 = 11,
    S_C8 = 15, S_C12 = 17 };

static double float_share(void) { return IS_FLOAT ? 3e-6 : 0; }

/* The same for a tree of any depth: nodes and sources have places that are rounded to floats of the
   whole square, and more so, measured in sides of its cells, the deeper a tree is, up to 17
   levels. */
static double deep_share(const nbody *sim)
{
    int const levels = sim->cell ? sim->frame->levels : 1;
    return IS_FLOAT ? 3e-6 + ldexp(1, (levels < 17 ? levels : 17) - 27) : 0;
}

/* How far two programs that compute the same may be apart, as a share of S. */
static double rounding(void) { return IS_FLOAT ? 3e-6 : 1e-11; }

static struct { const oracle_scene *scene; const nbody_desc *desc; const char *setting; } now;

static void describe_case(void)
{
    const nbody_desc *d = now.desc;
    if (now.scene)
        print_error("  %s, n %d\n", oracle_input_name(now.scene->input), (int)now.scene->n);
    if (now.setting) print_error("  %s\n", now.setting);
    if (d) print_error("  method %d, order %d, sources %d, subcells %d, levels %d, leaf %d, "
        "law %d, softening %g, gravity %g\n", (int)d->method, (int)d->order, (int)d->sources,
        (int)d->subcells, (int)d->levels, (int)d->leaf, (int)d->law, (double)d->softening,
        (double)d->gravity);
}

static void note(const oracle_scene *s, const nbody_desc *d, const char *setting)
{
    now.scene = s;
    now.desc = d;
    now.setting = setting;
    describe = describe_case;
}

static oracle_law law_of(const nbody_desc *d)
{
    return oracle_law_of(d->law == NBODY_INVERSE, d->gravity == 0 ? 1 : (double)d->gravity,
        (double)d->softening);
}

/* Forces and potentials of a scene. */
typedef struct outcome { nbody sim; real *acc, *potential; } outcome;

static void evaluate(outcome *o, const nbody_desc *d, const oracle_scene *s)
{
    memset(o, 0, sizeof *o);
    o->acc = NEW(real, 2 * (size_t)s->n);
    o->potential = NEW(real, s->n);
    CHECK_RESULT(nbody_fields(&o->sim, d, s->pos, 0, s->mass, s->n, o->acc, o->potential),
        NBODY_OK);
}

static void drop(outcome *o)
{
    nbody_free(&o->sim);
    free(o->acc);
    free(o->potential);
}

/* Errors against the direct sum, at all bodies. None may be above this share of S (floats: and what
   deep_share says). */
static oracle_errors check_against_direct(const nbody_desc *d, const oracle_scene *s, double share)
{
    oracle_law const law = law_of(d);
    oracle_errors e;
    oracle_field *truth;
    int32_t *chosen;
    outcome o;
    evaluate(&o, d, s);
    truth = oracle_truth(s, &law, s->n, &chosen);
    e = oracle_compare(o.acc, truth, NULL, s->n);
    CHECK_BELOW(e.share, share + deep_share(&o.sim));
    CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, s->n),
        share + deep_share(&o.sim));
    free(truth);
    free(chosen);
    drop(&o);
    return e;
}
