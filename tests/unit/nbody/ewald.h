/* ewald.h - the oracle of test_periodic.c: Ewald sums in double, which share no code with nbody.h.
   SPDX-License-Identifier: MIT OR Unlicense

       ewald_make(&sums, &desc, body, n);
       oracle_field f = ewald_at(&sums, &desc, x, y, self);       self -1: a point */

/* P. Ewald, Annalen der Physik 369, 1921, in two dimensions. The potential of unit mass
   is the Fourier series - sum over k != 0 of c(k) cos(k d), with k = 2 pi (i, j) / side and, for
   the side 1,

       1/d^2: c = 2 pi / k exp(-k s) for PLUMMER of softening s
       1/d:   c = 2 pi / k^2, PLUMMER 2 pi s / k K_1(k s), GAUSSIAN 2 pi / k^2 exp(-k^2 s^2 / 4)

   Without a core it converges slowly: c(k) is multiplied by a factor that ends soon (erfc(k / 2 a),
   exp(-k^2 / 4 a^2)), and the rest is summed over bodies: with a = 12 only the nearest image
   counts. */

#define ALPHA 12.0
enum { WAVES = 50 };

/* E_1, by its series or a continued fraction (Abramowitz, Stegun, 5.1.11 and 5.1.22). */
static double integral_of_exp(double q)
{
    double sum = 0, term = 1;
    int k;
    if (q > 2) {
        for (k = 60; k >= 1; k--) sum = k / (1 + k / (q + sum));
        return exp(-q) / (q + sum);
    }
    for (k = 1; k < 40; k++) sum -= (term *= -q / k) / k;
    return -0.57721566490153286 - log(q) + sum;
}

/* K_1(x): the integral of exp(-x cosh t) cosh t. */
static double bessel_k1(double x)
{
    double const step = 1.0 / 8;
    double sum = exp(-x) / 2;
    int k;
    for (k = 1; k < 48; k++) sum += exp(-x * cosh(k * step)) * cosh(k * step);
    return sum * step;
}

typedef struct ewald {
    int inverse, split;         /* split: by ALPHA, for s = 0 */
    double side, min[2], s, turn;
    const oracle_body *body;
    int32_t n;
    double c[WAVES + 1][2 * WAVES + 1], re[WAVES + 1][2 * WAVES + 1], im[WAVES + 1][2 * WAVES + 1];
} ewald;

static double wave_factor(const ewald *e, const nbody_desc *d, double k)
{
    double const s = e->s, turn = 2 * ORACLE_PI;
    if (!e->inverse) return turn / k * (s > 0 ? exp(-k * s) : erfc(k / (2 * ALPHA)));
    if (!(s > 0)) return turn / (k * k) * exp(-k * k / (4 * ALPHA * ALPHA));
    if (d->core == NBODY_GAUSSIAN) return turn / (k * k) * exp(-k * k * s * s / 4);
    return k * s > 60 ? 0 : turn * s / k * bessel_k1(k * s);
}

/* Waves i >= 0, half of the plane; the sums of m exp(-i k r). */
static void ewald_make(ewald *e, const nbody_desc *d, const oracle_body *body, int32_t n)
{
    int i, j;
    int32_t b;
    memset(e, 0, sizeof *e);
    e->inverse = d->law != NBODY_INVERSE_SQUARE;
    e->side = (double)d->size;
    e->min[0] = (double)d->min[0];
    e->min[1] = (double)d->min[1];
    e->s = (double)d->softening / e->side;
    e->split = !(e->s > 0);
    e->body = body;
    e->n = n;
    for (i = 0; i <= WAVES; i++)
        for (j = i ? -WAVES : 1; j <= WAVES; j++) {
            double const k = 2 * ORACLE_PI * sqrt((double)(i * i + j * j));
            double const c = 2 * wave_factor(e, d, k);
            double re = 0, im = 0;
            if (i * i + j * j > WAVES * WAVES || c < 1e-19) continue;
            for (b = 0; b < n; b++) {
                double const phase = 2 * ORACLE_PI / e->side *
                                     (i * (body[b].x - e->min[0]) + j * (body[b].y - e->min[1]));
                re += body[b].m * cos(phase);
                im += body[b].m * sin(phase);
            }
            e->c[i][j + WAVES] = c;
            e->re[i][j + WAVES] = re;
            e->im[i][j + WAVES] = im;
        }
}

/* What the nearest image adds with a split; self: minus the body's own pole. d in sides. */
static void ewald_near(const ewald *e, double m, double dx, double dy, int self, oracle_field *f)
{
    double const r = sqrt(dx * dx + dy * dy), q = ALPHA * ALPHA * r * r;
    double g;
    if (self) {
        f->p += m * (e->inverse ? 0.57721566490153286 / 2 + log(ALPHA) - log(e->side)
                                : 2 * ALPHA / sqrt(ORACLE_PI));
        return;
    }
    if (!(r > 0)) return;
    f->p -= m * (e->inverse ? integral_of_exp(q) / 2 : erfc(ALPHA * r) / r);
    g = e->inverse ? exp(-q) / (r * r)
                   : (erfc(ALPHA * r) / r + 2 * ALPHA / sqrt(ORACLE_PI) * exp(-q)) / (r * r);
    f->x += m * g * dx;
    f->y += m * g * dy;
}

/* The potential of a body itself, which Fourier series of a core have, and nbody.h has not. */
static double own_potential(const ewald *e, const nbody_desc *d)
{
    if (e->split) return 0;
    if (d->core == NBODY_GAUSSIAN) return log(e->s * e->side) - 0.57721566490153286 / 2;
    return e->inverse ? log(e->s * e->side) : -1 / e->s;
}

/* Acceleration and potential at a point, or of body `self`; share: about the sum of all |terms|. */
static oracle_field ewald_at(const ewald *e, const nbody_desc *d, double x, double y, int32_t self)
{
    oracle_field f = {0, 0, 0, 0, 0};
    double mass = 0, unit;
    int32_t b;
    int i, j;
    for (b = 0; b < e->n; b++) {
        double dx = (e->body[b].x - x) / e->side, dy = (e->body[b].y - y) / e->side, r;
        dx -= floor(dx + 0.5);
        dy -= floor(dy + 0.5);
        mass += e->body[b].m;
        r = sqrt(dx * dx + dy * dy + e->s * e->s);
        if (b != self && r > 0) {
            f.share += fabs(e->body[b].m) * (e->inverse ? 1 / r : 1 / (r * r));
            f.p_share += fabs(e->body[b].m) * (e->inverse ? 1 + fabs(log(r)) : 1 / r);
        }
        if (e->split) ewald_near(e, e->body[b].m, dx, dy, b == self, &f);
        else if (b == self) f.p -= e->body[b].m * own_potential(e, d);
    }
    if (e->split)
        f.p += mass * (e->inverse ? ORACLE_PI / (2 * ALPHA * ALPHA) : 2 * sqrt(ORACLE_PI) / ALPHA);
    for (i = 0; i <= WAVES; i++)
        for (j = -WAVES; j <= WAVES; j++) {
            double const c = e->c[i][j + WAVES], re = e->re[i][j + WAVES],
                         im = e->im[i][j + WAVES];
            double phase, wave;
            if (!(c > 0)) continue;
            phase = 2 * ORACLE_PI / e->side * (i * (x - e->min[0]) + j * (y - e->min[1]));
            f.p -= c * (re * cos(phase) + im * sin(phase));
            wave = 2 * ORACLE_PI * c * (im * cos(phase) - re * sin(phase));
            f.x += i * wave;
            f.y += j * wave;
        }
    unit = (double)d->gravity / e->side / (e->inverse ? 1 : e->side);
    f.x *= unit;
    f.y *= unit;
    f.share *= fabs(unit);
    f.p *= unit * e->side;
    f.p_share *= fabs(unit) * e->side;
    if (d->law == NBODY_VORTEX) {
        double const fx = f.x, turn = 2 * ORACLE_PI;
        f.x = f.y / turn;
        f.y = -fx / turn;
        f.p /= -turn;
        f.share /= turn;
        f.p_share /= turn;
    }
    return f;
}
