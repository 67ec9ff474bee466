/* surfaces.c - a part of test_nlist.c: triangle meshes, and which of their triangles a sphere
   touches. The oracle is the nearest point of every triangle, in double. It is a contact where
   the distance to the whole surface has a minimum there, that is, where no triangle through this
   point comes nearer. Of several triangles with that point one has the contact: the first, where
   rounding does not decide which of them is the nearest.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { FACE, EDGE_AB, EDGE_BC, EDGE_CA, VERTEX_A, VERTEX_B, VERTEX_C };

typedef struct surface {
    real *vertex;       /* stb_ds array: 3 per vertex */
    int32_t *index;     /* stb_ds array: 3 per triangle */
    int form;           /* how it is handed over */
    real *given;        /* as it is handed over */
    int32_t *given_index;
    nlist_mesh mesh;
    lbvh tree;
} surface;

/* Corners in threes or with indices, tightly packed or with something between them. */
enum { LOOSE, INDEXED, LOOSE_STRIDE, INDEXED_STRIDE, FORMS };

static int32_t add_vertex(surface *s, double x, double y, double z)
{
    arrput(s->vertex, (real)x);
    arrput(s->vertex, (real)y);
    arrput(s->vertex, (real)z);
    return (int32_t)(arrlen(s->vertex) / 3 - 1);
}

static void add_triangle(surface *s, int32_t a, int32_t b, int32_t c)
{
    arrput(s->index, a);
    arrput(s->index, b);
    arrput(s->index, c);
}

static int32_t triangles(const surface *s) { return (int32_t)(arrlen(s->index) / 3); }

static const real *corner(const surface *s, int32_t t, int v)
{
    return s->vertex + 3 * s->index[3 * t + v];
}

static void hand_over(surface *s, int form)
{
    int const indexed = form == INDEXED || form == INDEXED_STRIDE, wide = form >= LOOSE_STRIDE;
    size_t const step = (size_t)((indexed ? 3 : 9) + (wide ? 2 : 0));
    size_t const count = (size_t)(indexed ? arrlen(s->vertex) / 3 : triangles(s));
    lbvh_desc d;
    size_t k;
    int v;
    free(s->given);
    free(s->given_index);
    s->form = form;
    s->given = NEW(real, count * step);
    s->given_index = indexed ? NEW(int32_t, arrlen(s->index)) : NULL;
    for (k = 0; k < count; k++) {
        if (indexed) memcpy(s->given + k * step, s->vertex + 3 * k, 3 * sizeof(real));
        for (v = 0; v < 3 && !indexed; v++)
            memcpy(s->given + k * step + 3 * v, corner(s, (int32_t)k, v), 3 * sizeof(real));
    }
    if (indexed && s->index)
        memcpy(s->given_index, s->index, (size_t)arrlen(s->index) * sizeof *s->index);
    memset(&s->mesh, 0, sizeof s->mesh);
    s->mesh.vertices = s->given;
    s->mesh.indices = s->given_index;
    s->mesh.vertex_count = indexed ? (int32_t)count : 0;
    s->mesh.stride = wide ? step * sizeof(real) : 0;
    s->mesh.triangles = triangles(s);
    memset(&d, 0, sizeof d);
    d.kind = LBVH_TRIANGLES;
    d.indices = s->given_index;
    d.vertices = s->mesh.vertex_count;
    CHECK(lbvh_build(&s->tree, &d, s->given, s->mesh.stride, s->mesh.triangles) == LBVH_OK);
}

static void drop_surface(surface *s)
{
    arrfree(s->vertex);
    arrfree(s->index);
    free(s->given);
    free(s->given_index);
    lbvh_free(&s->tree);
    memset(s, 0, sizeof *s);
}

/* A floor of columns x rows squares of two triangles each, its corners at height z(x, y) and moved
   in the plane by `jitter`. */
typedef double height_fn(double x, double y);

static void add_floor(surface *s, int columns, int rows, double edge, double jitter,
    height_fn *height)
{
    int32_t const first = (int32_t)(arrlen(s->vertex) / 3);
    int i, j;
    for (j = 0; j <= rows; j++) for (i = 0; i <= columns; i++) {
        double const x = edge * i + jitter * ((double)wl_u(&dice) - 0.5),
            y = edge * j + jitter * ((double)wl_u(&dice) - 0.5);
        add_vertex(s, x, y, height(x, y));
    }
    for (j = 0; j < rows; j++) for (i = 0; i < columns; i++) {
        int32_t const a = first + j * (columns + 1) + i, b = a + 1, c = a + columns + 1, d = c + 1;
        if ((i + j) % 2) {
            add_triangle(s, a, b, d);
            add_triangle(s, d, c, a);
        } else {
            add_triangle(s, c, a, b);
            add_triangle(s, b, d, c);
        }
    }
}

static double flat(double x, double y) { (void)x; (void)y; return 0; }
static double hilly(double x, double y)
{
    (void)x;
    (void)y;
    return 0.35 * ((double)wl_u(&dice) - 0.5);
}

/* ------------------------------------------------------------------------------------------------
   The oracle
   ---------------------------------------------------------------------------------------------- */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double apart(const double a[3], const double b[3])
{
    double const d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return sqrt(dot(d, d));
}

static void to_double(const real *p, double q[3])
{
    q[0] = (double)p[0], q[1] = (double)p[1], q[2] = (double)p[2];
}

/* The nearest point of a segment, and where along it that is, 0 .. 1. */
static double on_segment(const double p[3], const double a[3], const double b[3], double q[3])
{
    double const d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]},
        e[3] = {p[0] - a[0], p[1] - a[1], p[2] - a[2]};
    double const length = dot(d, d);
    double t = length > 0 ? dot(d, e) / length : 0;
    int k;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    for (k = 0; k < 3; k++) q[k] = a[k] + t * d[k];
    return t;
}

/* The foot of p in the plane, if it lies inside the triangle; `inside`: its least barycentric
   coordinate. */
static int in_plane(const double p[3], double c[3][3], double q[3], double *inside)
{
    double u[3], v[3], w[3], uu, uv, vv, wu, wv, det, s, t;
    int k;
    for (k = 0; k < 3; k++)
        u[k] = c[1][k] - c[0][k], v[k] = c[2][k] - c[0][k], w[k] = p[k] - c[0][k];
    uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), wu = dot(w, u), wv = dot(w, v);
    det = uu * vv - uv * uv;
    if (!(det > 1e-14 * uu * vv)) return 0; /* no plane */
    s = (vv * wu - uv * wv) / det;
    t = (uu * wv - uv * wu) / det;
    *inside = s < t ? s : t;
    if (1 - s - t < *inside) *inside = 1 - s - t;
    for (k = 0; k < 3; k++) q[k] = c[0][k] + s * u[k] + t * v[k];
    return *inside >= 0;
}

/* The nearest point of a triangle; its feature, or -1 where that is not clear. */
static double nearest(const surface *s, int32_t t, const double p[3], double q[3], int *feature)
{
    double c[3][3], r[3], inside = 0, best = INFINITY;
    int v;
    for (v = 0; v < 3; v++) to_double(corner(s, t, v), c[v]);
    if (in_plane(p, c, q, &inside)) {
        *feature = inside > 1e-4 ? FACE : -1;
        return apart(p, q);
    }
    for (v = 0; v < 3; v++) {
        double const along = on_segment(p, c[v], c[(v + 1) % 3], r), d = apart(p, r);
        if (d >= best) continue;
        best = d;
        memcpy(q, r, sizeof r);
        *feature = along <= 0 ? VERTEX_A + v : along >= 1 ? VERTEX_A + (v + 1) % 3
                   : along < 1e-4 || along > 1 - 1e-4 || inside > -1e-6 ? -1 : EDGE_AB + v;
    }
    return best;
}

typedef struct spot { double q[3], d; int feature, listed; } spot;

enum { NO, YES, UNCLEAR };

/* Is the nearest point of t a contact? Where rounding could decide, both answers are allowed. */
static int is_contact(const surface *s, const spot *spots, int32_t t, double reach)
{
    double const one = 3e-5 * reach, two = 4e-3 * reach;
    int32_t u, count = triangles(s);
    int unclear = fabs(spots[t].d - reach) < one, feature;
    if (spots[t].d > reach + one) return NO;
    for (u = 0; u < count; u++) {
        double through[3], same = apart(spots[t].q, spots[u].q), off;
        if (u == t) continue;
        if (same <= one) continue;
        if (same < two) {
            unclear = 1;
        } else if (spots[u].d < spots[t].d) {
            off = nearest(s, u, spots[t].q, through, &feature);
            if (off <= one) return NO;
            unclear |= off < two;
        }
    }
    return unclear ? UNCLEAR : YES;
}

/* One row against the oracle. Returns 0 where it could not tell. */
static int check_row(const nlist *list, const surface *s, int32_t i, const real *at, double reach)
{
    int32_t const count = triangles(s);
    spot *spots = NEW(spot, count);
    nlist_each e = nlist_of(list, i);
    double p[3];
    int32_t t;
    int clear = 1;
    to_double(at, p);
    for (t = 0; t < count; t++) {
        spots[t].d = nearest(s, t, p, spots[t].q, &spots[t].feature);
        spots[t].listed = 0;
    }
    for (t = 0; t < count; t++) {
        int32_t u; /* an unclear one also decides about its neighbours */
        if (is_contact(s, spots, t, reach) != UNCLEAR) continue;
        clear = 0;
        for (u = 0; u < count; u++)
            if (apart(spots[t].q, spots[u].q) < 0.02 * reach) spots[u].listed = 2;
    }
    while (nlist_next(&e)) {
        int32_t const feature = nlist_key_feature(e.id);
        real q[3];
        t = nlist_key_triangle(e.id);
        CHECK(t >= 0 && t < count && feature >= FACE && feature <= VERTEX_C &&
            e.id == nlist_key(t, feature));
        CHECK(nlist_mesh_closest(&s->mesh, t, at, q) == feature);
        if (spots[t].listed == 2) continue;
        CHECK(is_contact(s, spots, t, reach) == YES && !spots[t].listed);
        CHECK(spots[t].feature < 0 || spots[t].feature == feature);
        spots[t].listed = 1;
    }
    for (t = 0; t < count; t++) {
        int32_t u, entries = 0;
        if (spots[t].listed == 2 || is_contact(s, spots, t, reach) == NO) continue;
        for (u = 0; u < count; u++)
            entries += spots[u].listed == 1 && apart(spots[t].q, spots[u].q) <= 3e-5 * reach;
        CHECK(entries == 1);
    }
    free(spots);
    return clear;
}

static nlist_desc wall_desc(double radius)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = (real)radius;
    return d;
}

static int32_t row_length(const nlist *list, int32_t i)
{
    nlist_each e = nlist_of(list, i);
    int32_t count = 0;
    while (nlist_next(&e)) count++;
    return count;
}

/* The keys of one particle, as a list by hand: up to 4, then -1. */
static void check_keys(surface *s, double radius, double x, double y, double z, int32_t a,
    int32_t b, int32_t c)
{
    int32_t const want[3] = {a, b, c};
    real p[3];
    int form, k;
    p[0] = (real)x, p[1] = (real)y, p[2] = (real)z;
    for (form = 0; form < FORMS; form++) {
        nlist list = {0};
        nlist_desc d = wall_desc(radius);
        int32_t count = 0;
        hand_over(s, form);
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s->tree, &s->mesh, p, 0, 1), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (k = 0; k < 3; k++) count += want[k] >= 0;
        CHECK(row_length(&list, 0) == count && list.total == count && list.keys);
        for (k = 0; k < 3; k++) CHECK(want[k] < 0 || nlist_find(&list, 0, want[k]) >= 0);
        CHECK(list.desc.layout == NLIST_DYNAMIC &&
            list.rows[list.current].touched_count == (count > 0));
        (void)check_row(&list, s, 0, p, (double)d.radius);
        nlist_free(&list);
    }
}
