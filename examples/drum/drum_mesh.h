/* drum_mesh.h - the triangles of the drum: from and to STL files, as a mesh of vertices, and as a
   closed surface.
   SPDX-License-Identifier: MIT OR Unlicense

   >>stl     triangles from and to an STL file, and a drum with lifters to begin with
   >>mesh    corners at one place become one vertex; edges; the drum as it turns
   >>inside  is a point inside of a closed mesh? */

#ifndef DRUM_MESH_H
#define DRUM_MESH_H

#include "../common/base.h"

/* -------------------------------------------------------------------------------------------------
   >>stl
   ---------------------------------------------------------------------------------------------- */

/* Triangles without any order: corner c of triangle t is corner[9 * t + 3 * c]. */
typedef struct drum_soup {
    int32_t triangles;
    float *corner;
} drum_soup;

static void drum_put_little(FILE *file, uint32_t word, int bytes)
{
    int k;
    for (k = 0; k < bytes; k++) fputc((int)(word >> 8 * k & 255), file);
}

static void drum_put_little_floats(FILE *file, const float *values, int count)
{
    uint32_t word;
    int k;
    for (k = 0; k < count; k++) {
        memcpy(&word, values + k, 4);
        drum_put_little(file, word, 4);
    }
}

static void drum_normal(const float *corner, float normal[3])
{
    float u[3], v[3], length;
    int a;
    for (a = 0; a < 3; a++) {
        u[a] = corner[3 + a] - corner[a];
        v[a] = corner[6 + a] - corner[a];
    }
    normal[0] = u[1] * v[2] - u[2] * v[1];
    normal[1] = u[2] * v[0] - u[0] * v[2];
    normal[2] = u[0] * v[1] - u[1] * v[0];
    length = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    for (a = 0; a < 3; a++) normal[a] = length > 0 ? normal[a] / length : 0;
}

/* 80 bytes of any text, the number of triangles, and 50 bytes for each: normal, corners, two
   unused bytes. */
static void drum_write_binary(FILE *file, const drum_soup *soup)
{
    char head[80] = "a drum with lifters (binary STL, metres, axis y)";
    int32_t t;
    fwrite(head, 1, sizeof head, file);
    drum_put_little(file, (uint32_t)soup->triangles, 4);
    for (t = 0; t < soup->triangles; t++) {
        float normal[3];
        drum_normal(soup->corner + 9 * (size_t)t, normal);
        drum_put_little_floats(file, normal, 3);
        drum_put_little_floats(file, soup->corner + 9 * (size_t)t, 9);
        drum_put_little(file, 0, 2);
    }
}

static void drum_write_text(FILE *file, const drum_soup *soup)
{
    int32_t t;
    int c;
    fprintf(file, "solid drum\n");
    for (t = 0; t < soup->triangles; t++) {
        const float *corner = soup->corner + 9 * (size_t)t;
        float n[3];
        drum_normal(corner, n);
        fprintf(file, "facet normal %.9g %.9g %.9g\n outer loop\n", (double)n[0], (double)n[1],
                (double)n[2]);
        for (c = 0; c < 3; c++)
            fprintf(file, "  vertex %.9g %.9g %.9g\n", (double)corner[3 * c],
                    (double)corner[3 * c + 1], (double)corner[3 * c + 2]);
        fprintf(file, " endloop\nendfacet\n");
    }
    fprintf(file, "endsolid drum\n");
}

static void drum_write_stl(const char *path, const drum_soup *soup, int ascii)
{
    out_file const out = create_file(path);
    if (ascii) drum_write_text(out.file, soup);
    else drum_write_binary(out.file, soup);
    close_file(&out);
}

/* The whole file, and a zero behind it. */
static unsigned char *drum_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    size_t room = 0, got;
    *size = 0;
    if (!file) stop(1, "%s: %s", path, strerror(errno));
    do {
        room = room ? 2 * room : 65536;
        bytes = (unsigned char *)realloc(bytes, room);
        if (!bytes) stop(1, "%s: out of memory", path);
        got = fread(bytes + *size, 1, room - *size - 1, file);
        *size += got;
    } while (got > 0);
    if (ferror(file)) stop(1, "%s: %s", path, strerror(errno));
    fclose(file);
    bytes[*size] = 0;
    return bytes;
}

static uint32_t drum_word(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static drum_soup drum_soup_new(int32_t triangles)
{
    drum_soup soup;
    soup.triangles = triangles;
    soup.corner = (float *)zeros((size_t)triangles * 9, sizeof(float));
    return soup;
}

static drum_soup drum_read_binary(const unsigned char *bytes, uint32_t triangles)
{
    drum_soup soup = drum_soup_new((int32_t)triangles);
    uint32_t t, word;
    int k;
    for (t = 0; t < triangles; t++)
        for (k = 0; k < 9; k++) {
            word = drum_word(bytes + 84 + 50 * (size_t)t + 12 + 4 * k);
            memcpy(soup.corner + 9 * (size_t)t + k, &word, 4);
        }
    return soup;
}

/* Every "vertex" and the three numbers behind it; names, normals and loops say nothing that is
   needed. */
static drum_soup drum_read_text(const char *path, const char *text)
{
    static const char word[] = "vertex";
    const char *at;
    size_t corners = 0, k = 0;
    drum_soup soup;
    for (at = text; (at = strstr(at, word)) != NULL; at += sizeof word - 1) corners++;
    if (corners == 0 || corners % 3 != 0 || corners / 3 > INT32_MAX / 16)
        stop(1,
             "%s: is no STL file: neither 84 + 50 n bytes for n triangles, nor text with three "
             "lines \"vertex x y z\" for each",
             path);
    soup = drum_soup_new((int32_t)(corners / 3));
    for (at = text; (at = strstr(at, word)) != NULL;) {
        int a;
        for (a = 0, at += sizeof word - 1; a < 3; a++) {
            char *end;
            soup.corner[k++] = (float)strtod(at, &end);
            if (end == at)
                stop(1, "%s: \"vertex\" number %ld is not followed by three numbers", path,
                     (long)((k - 1) / 3 + 1));
            at = end;
        }
    }
    return soup;
}

/* Binary or text? The size tells; the word "solid" does not, for many binary files begin with it
   too. */
static drum_soup drum_read_stl(const char *path)
{
    size_t size, k;
    unsigned char *bytes = drum_load(path, &size);
    uint32_t const triangles = size >= 84 ? drum_word(bytes + 80) : 0;
    int const binary =
        triangles > 0 && triangles < INT32_MAX / 16 && size == 84 + 50 * (size_t)triangles;
    drum_soup const soup =
        binary ? drum_read_binary(bytes, triangles) : drum_read_text(path, (const char *)bytes);
    for (k = 0; k < 9 * (size_t)soup.triangles; k++)
        if (!(fabsf(soup.corner[k]) < 1e6f))
            stop(1, "%s: triangle %ld has a coordinate that no drum has", path, (long)(k / 9));
    free(bytes);
    return soup;
}

/* The drum that is written when there is no other: a cylinder of radius 0.2 m around the y axis,
   closed at both ends, with 6 lifters along its wall. Round the axis it has 96 segments:

          7 ,---. 8           once in 16 segments,
           /     \            an eighth of the radius high
     -----'       `-----
          6       9
*/
#define DRUM_RADIUS 0.2f
enum { DRUM_SEGMENTS = 96, DRUM_LIFTERS = 6, DRUM_RINGS = 8 };

static void drum_profile(int k, float part, float y, float p[3])
{
    int const at = k % (DRUM_SEGMENTS / DRUM_LIFTERS);
    double const angle = 2 * PI * (k % DRUM_SEGMENTS) / DRUM_SEGMENTS;
    float const radius = DRUM_RADIUS * part * (at == 7 || at == 8 ? 0.875f : 1.0f);
    p[0] = radius * (float)cos(angle);
    p[1] = y;
    p[2] = radius * (float)sin(angle);
}

/* Two triangles between segments k and k + 1; for the innermost ring, where two corners are one,
   only the first has an area. */
static void drum_quad(drum_soup *soup, int k, float part0, float y0, float part1, float y1)
{
    float p[4][3];
    static const int corner[6] = {0, 2, 1, 1, 2, 3};
    int c, count = part0 > 0 && part1 > 0 ? 6 : 3;
    drum_profile(k, part0, y0, p[0]);
    drum_profile(k + 1, part0, y0, p[1]);
    drum_profile(k, part1, y1, p[2]);
    drum_profile(k + 1, part1, y1, p[3]);
    if (part1 <= 0) memcpy(p[2], p[3], sizeof p[2]);
    if (part0 <= 0) memcpy(p[1], p[3], sizeof p[1]);
    for (c = 0; c < count; c++)
        memcpy(soup->corner + 9 * (size_t)soup->triangles + 3 * c, p[corner[c]], sizeof p[0]);
    soup->triangles += count / 3;
}

static drum_soup drum_make(float length)
{
    float const half = length * DRUM_RADIUS; /* length is in diameters */
    int const rows = (int)ceilf(2 * half / (0.1f * DRUM_RADIUS));
    drum_soup soup = drum_soup_new(DRUM_SEGMENTS * 2 * (rows + 2 * DRUM_RINGS));
    int k, j;
    soup.triangles = 0;
    for (k = 0; k < DRUM_SEGMENTS; k++) {
        for (j = 0; j < rows; j++)
            drum_quad(&soup, k, 1, half * (2 * (float)j / (float)rows - 1), 1,
                      half * (2 * (float)(j + 1) / (float)rows - 1));
        for (j = 0; j < DRUM_RINGS; j++) {
            float const inner = (float)j / DRUM_RINGS, outer = (float)(j + 1) / DRUM_RINGS;
            drum_quad(&soup, k, inner, -half, outer, -half);
            drum_quad(&soup, k, outer, half, inner, half);
        }
    }
    return soup;
}

/* Writes the drum where there is none, and reads it. */
static drum_soup drum_get_soup(const char *stl, const char *out, float length, int ascii)
{
    char path[1100];
    struct stat seen;
    snprintf(path, sizeof path, "%s", stl ? stl : "");
    if (!stl) {
        make_folder(out);
        snprintf(path, sizeof path, "%s/drum.stl", out);
    }
    if (!stl || (stat(path, &seen) != 0 && errno == ENOENT)) {
        drum_soup made = drum_make(length);
        drum_write_stl(path, &made, ascii);
        free(made.corner);
    }
    return drum_read_stl(path);
}

/* -------------------------------------------------------------------------------------------------
   >>mesh
   ---------------------------------------------------------------------------------------------- */

/* Two corners, lower vertex first, and the triangles on both sides; right -1: there is none, the
   mesh is open here. */
typedef struct drum_edge { int32_t a, b, left, right; } drum_edge;

typedef struct drum_mesh {
    int32_t vertices, triangles, edges, open_edges;
    float *rest;            /* [3 * vertices] as in the file */
    float *now;             /* [3 * vertices] turned */
    /* [3 * triangles] seen from outside, the corners go round against the clock */
    int32_t *indices;
    drum_edge *edge;
    float radius, low, high;/* of the smallest cylinder around the y axis that holds it all */
    double volume;
} drum_mesh;

typedef struct drum_corner { float p[3]; int32_t at; } drum_corner;

static int drum_order_floats(const float *a, const float *b, int count)
{
    int k;
    for (k = 0; k < count; k++)
        if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    return 0;
}

static int drum_order_corners(const void *a, const void *b)
{
    return drum_order_floats(((const drum_corner *)a)->p, ((const drum_corner *)b)->p, 3);
}

/* Corners at the same place become one vertex: only then are neighbouring triangles known as
   neighbours once they turn. */
static void drum_weld(drum_mesh *mesh, const drum_soup *soup)
{
    int32_t const count = 3 * soup->triangles;
    drum_corner *corner = (drum_corner *)zeros((size_t)count, sizeof *corner);
    int32_t k;
    mesh->rest = (float *)zeros((size_t)count * 3, sizeof(float));
    mesh->indices = (int32_t *)zeros((size_t)count, sizeof(int32_t));
    for (k = 0; k < count; k++) {
        memcpy(corner[k].p, soup->corner + 3 * (size_t)k, sizeof corner[k].p);
        corner[k].at = k;
    }
    qsort(corner, (size_t)count, sizeof *corner, drum_order_corners);
    for (k = 0; k < count; k++) {
        if (k == 0 || drum_order_corners(corner + k - 1, corner + k) != 0)
            memcpy(mesh->rest + 3 * (size_t)mesh->vertices++, corner[k].p, sizeof corner[k].p);
        mesh->indices[corner[k].at] = mesh->vertices - 1;
    }
    free(corner);
}

/* Keeps the triangles whose three corners are three vertices: others are edges or points, which
   their neighbours have too. */
static void drum_drop_degenerate(drum_mesh *mesh, int32_t triangles)
{
    int32_t t;
    mesh->triangles = 0;
    for (t = 0; t < triangles; t++) {
        const int32_t *v = mesh->indices + 3 * (size_t)t;
        if (v[0] == v[1] || v[1] == v[2] || v[2] == v[0]) continue;
        memmove(mesh->indices + 3 * (size_t)mesh->triangles++, v, 3 * sizeof *v);
    }
}

static int drum_order_edges(const void *a, const void *b)
{
    const drum_edge *x = (const drum_edge *)a, *y = (const drum_edge *)b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    return (x->left > y->left) - (x->left < y->left);
}

/* In a closed surface each edge has two triangles. */
static void drum_find_edges(drum_mesh *mesh)
{
    int32_t const sides = 3 * mesh->triangles;
    int32_t k;
    mesh->edge = (drum_edge *)zeros((size_t)sides, sizeof *mesh->edge);
    for (k = 0; k < sides; k++) {
        int32_t const u = mesh->indices[k], v = mesh->indices[k % 3 == 2 ? k - 2 : k + 1];
        mesh->edge[k].a = u < v ? u : v;
        mesh->edge[k].b = u < v ? v : u;
        mesh->edge[k].left = k / 3;
        mesh->edge[k].right = -1;
    }
    qsort(mesh->edge, (size_t)sides, sizeof *mesh->edge, drum_order_edges);
    for (k = 0; k < sides; k++) {
        drum_edge *edge = mesh->edge + mesh->edges++;
        *edge = mesh->edge[k];
        if (k + 1 < sides && mesh->edge[k + 1].a == edge->a && mesh->edge[k + 1].b == edge->b)
            edge->right = mesh->edge[++k].left;
        else mesh->open_edges++;
    }
}

static const float *drum_vertex(const float *vertices, const drum_mesh *mesh, int32_t triangle,
                                int corner)
{
    return vertices + 3 * (size_t)mesh->indices[3 * (size_t)triangle + (size_t)corner];
}

/* Six times the volume of the tetrahedron under a triangle; negative where it is seen from
   inside. */
static double drum_six_volumes(const float *a, const float *b, const float *c)
{
    return (double)a[0] * ((double)b[1] * (double)c[2] - (double)b[2] * (double)c[1]) +
           (double)a[1] * ((double)b[2] * (double)c[0] - (double)b[0] * (double)c[2]) +
           (double)a[2] * ((double)b[0] * (double)c[1] - (double)b[1] * (double)c[0]);
}

/* Volume and size; turns all triangles round if they are given as seen from inside. */
static void drum_measure_mesh(drum_mesh *mesh)
{
    int32_t t, v;
    mesh->low = 1e30f;
    mesh->high = -1e30f;
    for (t = 0; t < mesh->triangles; t++)
        mesh->volume += drum_six_volumes(drum_vertex(mesh->rest, mesh, t, 0),
                                         drum_vertex(mesh->rest, mesh, t, 1),
                                         drum_vertex(mesh->rest, mesh, t, 2)) /
                        6;
    for (t = 0; mesh->volume < 0 && t < mesh->triangles; t++) {
        int32_t *corner = mesh->indices + 3 * (size_t)t, second = corner[1];
        corner[1] = corner[2];
        corner[2] = second;
    }
    mesh->volume = fabs(mesh->volume);
    for (v = 0; v < mesh->vertices; v++) {
        const float *p = mesh->rest + 3 * (size_t)v;
        float const radius = sqrtf(p[0] * p[0] + p[2] * p[2]);
        if (radius > mesh->radius) mesh->radius = radius;
        if (p[1] < mesh->low) mesh->low = p[1];
        if (p[1] > mesh->high) mesh->high = p[1];
    }
}

/* A vertex of the drum at rest, turned round the y axis. */
UGRID_FN void drum_turn(const float rest[3], float cosine, float sine, float now[3])
{
    now[0] = cosine * rest[0] + sine * rest[2];
    now[1] = rest[1];
    now[2] = cosine * rest[2] - sine * rest[0];
}

static void drum_turn_mesh(drum_mesh *mesh, double angle)
{
    int32_t v;
    for (v = 0; v < mesh->vertices; v++)
        drum_turn(mesh->rest + 3 * (size_t)v, (float)cos(angle), (float)sin(angle),
                  mesh->now + 3 * (size_t)v);
}

static drum_mesh drum_mesh_new(const drum_soup *soup)
{
    drum_mesh mesh;
    memset(&mesh, 0, sizeof mesh);
    drum_weld(&mesh, soup);
    drum_drop_degenerate(&mesh, soup->triangles);
    drum_find_edges(&mesh);
    drum_measure_mesh(&mesh);
    mesh.now = (float *)zeros((size_t)mesh.vertices * 3, sizeof(float));
    drum_turn_mesh(&mesh, 0);
    if (mesh.open_edges)
        fprintf(stderr, PROGRAM ": the mesh has %ld open edges: spheres may get lost there\n",
                (long)mesh.open_edges);
    if (!(mesh.volume > 0)) stop(1, "the mesh has no room inside");
    return mesh;
}

static void drum_mesh_free(drum_mesh *mesh)
{
    free(mesh->rest);
    free(mesh->now);
    free(mesh->indices);
    free(mesh->edge);
    memset(mesh, 0, sizeof *mesh);
}

/* The mesh as nlist.h and lbvh.h take it. */
static nlist_mesh drum_list_mesh(const drum_mesh *mesh)
{
    nlist_mesh m;
    memset(&m, 0, sizeof m);
    m.vertices = mesh->now;
    m.vertex_count = mesh->vertices;
    m.indices = mesh->indices;
    m.triangles = mesh->triangles;
    return m;
}

static lbvh_desc drum_tree_desc(const nlist_mesh *mesh)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    desc.indices = mesh->indices;
    desc.vertices = mesh->vertex_count;
    return desc;
}

/* -------------------------------------------------------------------------------------------------
   >>inside: a line from p along the y axis crosses a closed surface an odd number of times if p is
   inside

   In the plane of x and z the line is a point, and each triangle asks whether it holds that point,
   by the same question for its edges in that plane: an odd number of them is crossed by a line
   along x. An edge gives both of its triangles the same answer, whatever is rounded; so no line
   slips between two triangles, and none counts both.
   ---------------------------------------------------------------------------------------------- */

static int drum_crosses_edge(const float *a, const float *b, const float p[3])
{
    if ((a[2] > p[2]) == (b[2] > p[2])) return 0;
    if (a[2] > b[2]) {
        const float *keep = a;
        a = b;
        b = keep;
    }
    return (double)p[0] < (double)a[0] + ((double)p[2] - (double)a[2]) /
                                             ((double)b[2] - (double)a[2]) *
                                             ((double)b[0] - (double)a[0]);
}

/* Is the triangle above p, in the direction of y? */
static int drum_above(const float *const c[3], const float p[3])
{
    double const ux = (double)c[1][0] - (double)c[0][0], uz = (double)c[1][2] - (double)c[0][2];
    double const vx = (double)c[2][0] - (double)c[0][0], vz = (double)c[2][2] - (double)c[0][2];
    double const px = (double)p[0] - (double)c[0][0], pz = (double)p[2] - (double)c[0][2],
                 area = ux * vz - uz * vx;
    double s, t;
    if (!(drum_crosses_edge(c[0], c[1], p) ^ drum_crosses_edge(c[1], c[2], p) ^
          drum_crosses_edge(c[2], c[0], p)))
        return 0;
    if (area == 0) return 0;
    s = (px * vz - pz * vx) / area;
    t = (ux * pz - uz * px) / area;
    return (double)c[0][1] + s * ((double)c[1][1] - (double)c[0][1]) +
               t * ((double)c[2][1] - (double)c[0][1]) >
           (double)p[1];
}

static int drum_inside(const lbvh *tree, const nlist_mesh *mesh, float top, const float p[3])
{
    float const end[3] = {p[0], top, p[2]};
    lbvh_overlap line;
    int inside = 0;
    if (!(p[1] <= top)) return 0;
    line = lbvh_overlap_between(tree, p, end);
    while (lbvh_next(&line)) {
        const float *corner[3];
        nlist_mesh_corners(mesh, line.id, corner);
        inside ^= drum_above(corner, p);
    }
    return inside;
}

/* Is the surface at least that far away from p? */
static int drum_clear(const lbvh *tree, const nlist_mesh *mesh, const float p[3], float distance)
{
    lbvh_overlap near = lbvh_overlap_sphere(tree, p, distance);
    while (lbvh_next(&near)) {
        float q[3];
        nlist_mesh_closest(mesh, near.id, p, q);
        if ((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1]) +
                (q[2] - p[2]) * (q[2] - p[2]) <
            distance * distance)
            return 0;
    }
    return 1;
}

#endif /* DRUM_MESH_H */
