/* nbody_pyramid.h - a part of nbody_oracle.h, which includes it: the algorithms of the source on a
   dense pyramid of cells, in double, as plainly as they can be written.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NBODY_PYRAMID_H
#define NBODY_PYRAMID_H

typedef struct oracle_how {
    oracle_law law;
    int levels;
    double x0, y0, size;    /* the square */
    /* masses at their centres, of so many squares per side of a cell; 0: masses at Chebyshev
       points */
    int subcells;
    int moments;            /* 1: with their second moments (virtual particles acting on bodies) */
    int side;               /* nodes per side; 0: no force nodes */
    int linear;             /* 1: even nodes, linear; 0: Chebyshev nodes */
} oracle_how;

enum { ORACLE_MAX_SIDE = 12, ORACLE_MAX_LEVELS = 10 };

/* m at (x, y), and the second moments of that mass around it. */
typedef struct oracle_source { double m, x, y, xx, xy, yy; } oracle_source;

typedef struct oracle_pyramid {
    oracle_how how;
    const oracle_body *body;
    int32_t n;
    int per;                                    /* sources per side of a cell: subcells, or side */
    double t[ORACLE_MAX_SIDE];                  /* the nodes on 0 .. 1 */
    int32_t *column, *row;                      /* of each body, at the finest level */
    /* bodies of the finest cell k: member[start[k]] .. member[start[k + 1]] - 1 */
    int32_t *start, *member;
    int32_t *inside[ORACLE_MAX_LEVELS];         /* bodies in each cell */
    /* rows of per * 2^level; NULL: the bodies themselves act */
    oracle_source *source[ORACLE_MAX_LEVELS];
    /* 3 numbers per node: force x, force y, potential */
    double *node[ORACLE_MAX_LEVELS];
    uint8_t *known[ORACLE_MAX_LEVELS];          /* per cell: its nodes were computed */
    int64_t near_terms, far_terms;
} oracle_pyramid;

WL_FN void oracle_set_nodes(oracle_pyramid *p)
{
    int const k = p->how.side;
    int i;
    for (i = 0; i < k; i++)
        p->t[i] = p->how.linear ? (i + 0.5) / k : (1 - cos(ORACLE_PI * (i + 0.5) / k)) / 2;
}

/* The weight of each node for a point at u of the cell's side. */
WL_FN void oracle_weights(const oracle_pyramid *p, double u, double *w)
{
    int const k = p->how.side;
    int i, j;
    if (p->how.linear) {
        double const s = u * k - 0.5;
        int at = (int)floor(s);
        if (at < 0) at = 0;
        if (at > k - 2) at = k - 2;
        for (i = 0; i < k; i++) w[i] = i == at ? 1 - (s - at) : i == at + 1 ? s - at : 0;
        return;
    }
    for (i = 0; i < k; i++) {
        w[i] = 1;
        for (j = 0; j < k; j++) if (j != i) w[i] *= (u - p->t[j]) / (p->t[i] - p->t[j]);
    }
}

WL_FN double oracle_cell_size(const oracle_pyramid *p, int level)
{
    return ldexp(p->how.size, -level);
}

WL_FN int oracle_clamp(int i, int count) { return i < 0 ? 0 : i >= count ? count - 1 : i; }

/* Column (or row) of x among `count` over the side of the square. */
WL_FN int oracle_place(double x, double from, double size, int count)
{
    double const at = floor((x - from) / size * count);
    return at < 0 ? 0 : at >= count ? count - 1 : (int)at;
}

WL_FN void oracle_sort_bodies(oracle_pyramid *p)
{
    int const finest = p->how.levels - 1, side = 1 << finest;
    int32_t *fill = ZEROS(int32_t, side * side), i;
    int level, k;
    p->column = NEW(int32_t, p->n);
    p->row = NEW(int32_t, p->n);
    for (level = 0; level <= finest; level++)
        p->inside[level] = ZEROS(int32_t, (size_t)1 << 2 * level);
    for (i = 0; i < p->n; i++) {
        p->column[i] = oracle_place(p->body[i].x, p->how.x0, p->how.size, side);
        p->row[i] = oracle_place(p->body[i].y, p->how.y0, p->how.size, side);
        for (level = 0; level <= finest; level++) {
            int32_t const x = p->column[i] >> (finest - level), y = p->row[i] >> (finest - level);
            p->inside[level][(y << level) + x]++;
        }
    }
    p->start = ZEROS(int32_t, side * side + 1);
    p->member = NEW(int32_t, p->n);
    for (k = 0; k < side * side; k++) p->start[k + 1] = p->start[k] + p->inside[finest][k];
    for (i = 0; i < p->n; i++) {
        k = p->row[i] * side + p->column[i];
        p->member[p->start[k] + fill[k]++] = i;
    }
    free(fill);
}

WL_FN oracle_source *oracle_source_at(const oracle_pyramid *p, int level, int column, int row)
{
    return p->source[level] + (size_t)row * ((size_t)p->per << level) + (size_t)column;
}

/* Adds one mass, with what second moments it brings, to a sum that knows its centre already. */
WL_FN void oracle_add_moments(oracle_source *to, const oracle_source *s)
{
    double const dx = s->x - to->x, dy = s->y - to->y;
    to->xx += s->xx + s->m * dx * dx;
    to->xy += s->xy + s->m * dx * dy;
    to->yy += s->yy + s->m * dy * dy;
}

/* `count` masses become one at their centre; with moments or without. */
WL_FN oracle_source oracle_merged(const oracle_source *s, int count, int moments)
{
    oracle_source sum;
    int k;
    memset(&sum, 0, sizeof sum);
    for (k = 0; k < count; k++) {
        sum.m += s[k].m;
        sum.x += s[k].m * s[k].x;
        sum.y += s[k].m * s[k].y;
    }
    if (sum.m == 0) { memset(&sum, 0, sizeof sum); return sum; }
    sum.x /= sum.m;
    sum.y /= sum.m;
    for (k = 0; k < count && moments; k++) oracle_add_moments(&sum, &s[k]);
    return sum;
}

/* The coarsest virtual particles that are made of bodies: those of the cells over the finest
   ones. */
WL_FN void oracle_masses_of_bodies(oracle_pyramid *p, int level)
{
    int const side = p->per << level;
    oracle_source **list = ZEROS(oracle_source *, (size_t)side * (size_t)side);
    int32_t *count = ZEROS(int32_t, (size_t)side * (size_t)side), *at = NEW(int32_t, p->n), i;
    int k;
    for (i = 0; i < p->n; i++) {
        at[i] = oracle_place(p->body[i].y, p->how.y0, p->how.size, side) * side
                + oracle_place(p->body[i].x, p->how.x0, p->how.size, side);
        count[at[i]]++;
    }
    for (k = 0; k < side * side; k++) {
        if (count[k]) list[k] = ZEROS(oracle_source, count[k]);
        count[k] = 0;
    }
    for (i = 0; i < p->n; i++) {
        oracle_source *s = &list[at[i]][count[at[i]]++];
        s->m = p->body[i].m;
        s->x = p->body[i].x;
        s->y = p->body[i].y;
    }
    for (k = 0; k < side * side; k++) {
        p->source[level][k] = oracle_merged(list[k], count[k], p->how.moments);
        free(list[k]);
    }
    free(list);
    free(count);
    free(at);
}

/* 2 x 2 of them become one of the level above. */
WL_FN void oracle_masses_of_children(oracle_pyramid *p, int level)
{
    int const side = p->per << level;
    int x, y, k;
    for (y = 0; y < side; y++) for (x = 0; x < side; x++) {
        oracle_source four[4];
        for (k = 0; k < 4; k++)
            four[k] = *oracle_source_at(p, level + 1, 2 * x + k % 2, 2 * y + k / 2);
        *oracle_source_at(p, level, x, y) = oracle_merged(four, 4, p->how.moments);
    }
}

/* A mass is shared out to the points of a cell as a polynomial would weigh them. */
WL_FN void oracle_share_out(oracle_pyramid *p, int level, int column, int row, double x, double y,
    double m)
{
    double const h = oracle_cell_size(p, level);
    double wx[ORACLE_MAX_SIDE], wy[ORACLE_MAX_SIDE];
    int i, j;
    oracle_weights(p, (x - (p->how.x0 + h * column)) / h, wx);
    oracle_weights(p, (y - (p->how.y0 + h * row)) / h, wy);
    for (j = 0; j < p->per; j++) for (i = 0; i < p->per; i++)
        oracle_source_at(p, level, column * p->per + i, row * p->per + j)->m += m * wx[i] * wy[j];
}

/* Points of a level, and their masses: from the bodies, or from the points of the level below. */
WL_FN void oracle_chebyshev_masses(oracle_pyramid *p, int level)
{
    int const side = p->per << level, finest = p->how.levels - 1;
    double const h = oracle_cell_size(p, level);
    int32_t i;
    int x, y;
    for (y = 0; y < side; y++) for (x = 0; x < side; x++) {
        oracle_source *s = oracle_source_at(p, level, x, y);
        s->x = p->how.x0 + h * (x / p->per + p->t[x % p->per]);
        s->y = p->how.y0 + h * (y / p->per + p->t[y % p->per]);
    }
    if (level == finest) {
        for (i = 0; i < p->n; i++)
            oracle_share_out(p, level, p->column[i], p->row[i], p->body[i].x, p->body[i].y,
                p->body[i].m);
        return;
    }
    for (y = 0; y < 2 * side; y++) for (x = 0; x < 2 * side; x++) {
        const oracle_source *s = oracle_source_at(p, level + 1, x, y);
        if (s->m != 0) oracle_share_out(p, level, x / p->per / 2, y / p->per / 2, s->x, s->y, s->m);
    }
}

WL_FN void oracle_make_sources(oracle_pyramid *p)
{
    int const finest = p->how.levels - 1;
    int level;
    p->per = p->how.subcells ? p->how.subcells : p->how.side;
    for (level = p->how.subcells ? finest - 1 : finest; level >= 2; level--) {
        p->source[level] = ZEROS(oracle_source,
            (size_t)(p->per << level) * (size_t)(p->per << level));
        if (!p->how.subcells) oracle_chebyshev_masses(p, level);
        else if (level == finest - 1) oracle_masses_of_bodies(p, level);
        else oracle_masses_of_children(p, level);
    }
}

WL_FN oracle_pyramid *oracle_pyramid_of(const oracle_how *how, const oracle_body *body, int32_t n)
{
    oracle_pyramid *p = ZEROS(oracle_pyramid, 1);
    int level;
    p->how = *how;
    p->body = body;
    p->n = n;
    oracle_set_nodes(p);
    oracle_sort_bodies(p);
    oracle_make_sources(p);
    for (level = 2; level < how->levels && how->side; level++) {
        p->node[level] = ZEROS(double, ((size_t)3 << 2 * level) * (size_t)(how->side * how->side));
        p->known[level] = ZEROS(uint8_t, (size_t)1 << 2 * level);
    }
    return p;
}

WL_FN void oracle_drop_pyramid(oracle_pyramid *p)
{
    int level;
    if (!p) return;
    for (level = 0; level < ORACLE_MAX_LEVELS; level++) {
        free(p->inside[level]);
        free(p->source[level]);
        free(p->node[level]);
        free(p->known[level]);
    }
    free(p->column);
    free(p->row);
    free(p->start);
    free(p->member);
    free(p);
}

/* f += what a mass does at (x, y); the second moments by the second derivatives of the law. With D
   = source - (x, y) and q = D^2 + eps^2: acceleration m D g(q), potential m p(q), and p' = g /
   2. */
WL_FN void oracle_add_source(oracle_field *f, const oracle_law *law, const oracle_source *s,
    double x, double y, int is_self)
{
    double const dx = s->x - x, dy = s->y - y, bare = dx * dx + dy * dy,
        q = bare + law->softening * law->softening, r = sqrt(q);
    double const g = law->inverse ? 1 / q : 1 / (q * r);
    double const g1 = law->inverse ? -1 / (q * q) : -1.5 / (q * q * r);
    double const g2 = law->inverse ? 2 / (q * q * q) : 3.75 / (q * q * q * r);
    double const mx = s->xx * dx + s->xy * dy, my = s->xy * dx + s->yy * dy, trace = s->xx + s->yy,
        twice = dx * mx + dy * my;
    if (!oracle_counts(law, bare, is_self)) return;
    f->x += s->m * dx * g + 2 * mx * g1 + dx * trace * g1 + 2 * dx * twice * g2;
    f->y += s->m * dy * g + 2 * my * g1 + dy * trace * g1 + 2 * dy * twice * g2;
    f->p += s->m * (law->inverse ? log(r) : -1 / r) + trace * g / 2 + twice * g1;
}

/* f += what the cell (column, row) of a level does at (x, y), through its virtual particles or,
   where it has none, its bodies, but not body `self`. Returns the number of terms. */
WL_FN int64_t oracle_add_cell(const oracle_pyramid *p, oracle_field *f, int level, int column,
    int row, double x, double y, int32_t self)
{
    int64_t terms = 0;
    int i, j;
    if (!p->inside[level][(row << level) + column]) return 0;
    if (p->source[level]) {
        for (j = 0; j < p->per; j++) for (i = 0; i < p->per; i++) {
            const oracle_source *s = oracle_source_at(p, level, column * p->per + i,
                row * p->per + j);
            if (s->m == 0) continue;
            oracle_add_source(f, &p->how.law, s, x, y, 0);
            terms++;
        }
    } else {
        int32_t const cell = (row << level) + column;
        int32_t k;
        for (k = p->start[cell]; k < p->start[cell + 1]; k++) {
            const oracle_body *b = &p->body[p->member[k]];
            oracle_source s;
            memset(&s, 0, sizeof s);
            s.m = b->m;
            s.x = b->x;
            s.y = b->y;
            oracle_add_source(f, &p->how.law, &s, x, y, p->member[k] == self);
            terms++;
        }
    }
    return terms;
}

WL_FN int oracle_touch(int column, int row, int other_column, int other_row)
{
    return abs(column - other_column) <= 1 && abs(row - other_row) <= 1;
}

/* f += what the cells far from (column, row) do, whose parents touch its parent. Returns the number
   of terms. */
WL_FN int64_t oracle_add_far(const oracle_pyramid *p, oracle_field *f, int level, int column,
    int row, double x, double y)
{
    int64_t terms = 0;
    int c, r;
    for (r = 0; r < 1 << level; r++) {
        if (abs(r / 2 - row / 2) > 1) continue;
        for (c = 0; c < 1 << level; c++) {
            if (!oracle_touch(c / 2, r / 2, column / 2, row / 2) || oracle_touch(c, r, column, row))
                continue;
            terms += oracle_add_cell(p, f, level, c, r, x, y, -1);
        }
    }
    return terms;
}

WL_FN double *oracle_node(const oracle_pyramid *p, int level, int column, int row, int i, int j)
{
    size_t const k = (size_t)p->how.side, cell = ((size_t)row << level) + (size_t)column;
    return p->node[level] + 3 * (cell * k * k + (size_t)j * k + (size_t)i);
}

/* f += the nodes of a cell, weighed for (x, y). */
WL_FN void oracle_add_nodes(const oracle_pyramid *p, oracle_field *f, int level, int column,
    int row, double x, double y)
{
    double const h = oracle_cell_size(p, level);
    double wx[ORACLE_MAX_SIDE], wy[ORACLE_MAX_SIDE];
    int i, j;
    oracle_weights(p, (x - (p->how.x0 + h * column)) / h, wx);
    oracle_weights(p, (y - (p->how.y0 + h * row)) / h, wy);
    for (j = 0; j < p->how.side; j++) for (i = 0; i < p->how.side; i++) {
        const double *node = oracle_node(p, level, column, row, i, j);
        f->x += wx[i] * wy[j] * node[0];
        f->y += wx[i] * wy[j] * node[1];
        f->p += wx[i] * wy[j] * node[2];
    }
}

/* The nodes of a cell: what its parent's nodes say, and what is far from it. Computed when first
   asked for. */
WL_FN void oracle_know_nodes(oracle_pyramid *p, int level, int column, int row)
{
    uint8_t *known = &p->known[level][(row << level) + column];
    double const h = oracle_cell_size(p, level);
    int i, j;
    if (*known) return;
    *known = 1;
    if (level > 2) oracle_know_nodes(p, level - 1, column / 2, row / 2);
    for (j = 0; j < p->how.side; j++) for (i = 0; i < p->how.side; i++) {
        double const x = p->how.x0 + h * (column + p->t[i]), y = p->how.y0 + h * (row + p->t[j]);
        double *node = oracle_node(p, level, column, row, i, j);
        oracle_field f;
        memset(&f, 0, sizeof f);
        if (level > 2) oracle_add_nodes(p, &f, level - 1, column / 2, row / 2, x, y);
        p->far_terms += oracle_add_far(p, &f, level, column, row, x, y);
        node[0] = f.x;
        node[1] = f.y;
        node[2] = f.p;
    }
}

/* What the method says about body i; share and p_share are 0. Counts its terms into near_terms and
   far_terms. */
WL_FN oracle_field oracle_pyramid_at(oracle_pyramid *p, int32_t i)
{
    int const finest = p->how.levels - 1;
    double const x = p->body[i].x, y = p->body[i].y;
    oracle_field f;
    int level, dx, dy;
    memset(&f, 0, sizeof f);
    if (p->how.side && finest >= 2) {
        oracle_know_nodes(p, finest, p->column[i], p->row[i]);
        oracle_add_nodes(p, &f, finest, p->column[i], p->row[i], x, y);
    }
    for (level = 2; level <= finest && !p->how.side; level++)
        p->far_terms += oracle_add_far(p, &f, level, p->column[i] >> (finest - level),
            p->row[i] >> (finest - level), x, y);
    for (dy = -1; dy <= 1; dy++) for (dx = -1; dx <= 1; dx++) {
        int const c = p->column[i] + dx, r = p->row[i] + dy;
        oracle_source *const virtual_ones = p->source[finest];
        if (c < 0 || r < 0 || c >= 1 << finest || r >= 1 << finest) continue;
        p->source[finest] = NULL; /* what is near acts body by body */
        p->near_terms += oracle_add_cell(p, &f, finest, c, r, x, y, i);
        p->source[finest] = virtual_ones;
    }
    f.x *= p->how.law.gravity;
    f.y *= p->how.law.gravity;
    f.p *= p->how.law.gravity;
    return f;
}

#endif /* NBODY_PYRAMID_H */
