/* walks.cu - a part of test_lbvh.cu: walks in a kernel of the caller meet the same elements in
   the same order as on the CPU; boxes.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { WALK_BOX, WALK_POINT, WALK_SPHERE, WALK_LATER, WALK_NEAR, WALK_NEAREST, WALK_CLOSEST,
    WALK_RAY, WALK_HIT, WALKS };

enum { ROOM = 24, KEEP = 6 };

/* What one walk met. Both sides start from the same bytes, so that whole rows can be compared. */
struct Row {
    int32_t count, found, closest, feature;
    int32_t id[ROOM], place[ROOM], kept[KEEP];
    real value[ROOM], distance2[KEEP], hit[3], q[3];
};

/* What the walks are made from: a box of 2 dim numbers, a sphere of dim + 1, a direction of dim for
   each row. */
struct Probes {
    lbvh_desc desc;     /* with the indices of this side */
    const real *boxes, *spheres, *directions;
    const real *data;   /* of the triangles */
    size_t stride;
    uint32_t filter;
    int32_t rows;
};

static __host__ __device__ void note(Row *row, int32_t id, int32_t place, real value)
{
    if (row->count < ROOM) {
        row->id[row->count] = id;
        row->place[row->count] = place;
        row->value[row->count] = value;
    }
    row->count++;
}

static __host__ __device__ void note_overlaps(lbvh_overlap o, uint32_t filter, Row *row)
{
    o.filter = filter;
    while (lbvh_next(&o)) note(row, o.id, o.place, 0);
}

/* All that is in reach; or only the nearest, by shrinking the reach. */
static __host__ __device__ void note_near(lbvh_near walk, uint32_t filter, bool shrink, Row *row)
{
    walk.filter = filter;
    row->found = 0;
    while (lbvh_next_near(&walk)) {
        note(row, walk.id, walk.place, walk.distance2);
        if (!shrink) continue;
        walk.reach2 = lbvh_keep_nearest(row->kept, row->distance2, KEEP, &row->found, walk.reach2,
            walk.id, walk.distance2);
    }
}

static __host__ __device__ void note_ray(lbvh_ray ray, uint32_t filter, Row *row)
{
    ray.filter = filter;
    while (lbvh_next_ray(&ray)) note(row, ray.id, ray.place, ray.t);
}

/* The first triangle on the ray. */
static __host__ __device__ void note_hit(lbvh_ray ray, const Probes &probes, const real *origin,
    const real *direction, Row *row)
{
    row->closest = -1;
    while (lbvh_next_ray(&ray)) {
        const real *corner[3];
        real t, u, v;
        if (!lbvh_triangle(&probes.desc, probes.data, probes.stride, ray.id, corner)) continue;
        note(row, ray.id, ray.place, ray.t);
        if (!lbvh_ray_triangle(origin, direction, corner[0], corner[1], corner[2], &t, &u, &v))
            continue;
        if (!(t >= 0 && t < ray.t_max)) continue;
        ray.t_max = row->hit[0] = t;
        row->hit[1] = u;
        row->hit[2] = v;
        row->closest = ray.id;
    }
}

/* The triangle nearest to p, and the point on it. */
static __host__ __device__ void note_closest(lbvh_near walk, const Probes &probes, const real *p,
    Row *row)
{
    row->closest = -1;
    while (lbvh_next_near(&walk)) {
        const real *corner[3];
        real q[3];
        if (!lbvh_triangle(&probes.desc, probes.data, probes.stride, walk.id, corner)) continue;
        note(row, walk.id, walk.place, walk.distance2);
        lbvh_feature const feature =
            lbvh_closest_on_triangle(p, corner[0], corner[1], corner[2], q);
        real const d2 = lbvh_i_square(q[0] - p[0], q[1] - p[1], q[2] - p[2]);
        if (!(d2 < walk.reach2)) continue;
        walk.reach2 = d2;
        row->closest = walk.id;
        row->feature = (int32_t)feature;
        for (int a = 0; a < 3; a++) row->q[a] = q[a];
    }
}

/* The walks of one row begin here. */
struct Start {
    const real *box, *sphere, *along;
    real reach, t_max;
    uint32_t filter;
};

static __host__ __device__ Start start_of(const Probes &probes, int kind, int32_t k)
{
    int const dim = probes.desc.dim;
    Start s = {probes.boxes + k * 2 * dim, probes.spheres + k * (dim + 1),
        probes.directions + k * dim, 0, 0, probes.filter};
    s.reach = kind == WALK_NEAR ? s.sphere[dim] : lbvh_i_infinity();
    s.t_max = kind == WALK_RAY && k % 3 == 0 ? (real)0.75 : lbvh_i_infinity();
    return s;
}

static __host__ __device__ void note_near_kind(int kind, const lbvh_near &walk,
    const Probes &probes, const Start &s, Row *row)
{
    if (kind == WALK_CLOSEST) note_closest(walk, probes, s.sphere, row);
    else note_near(walk, s.filter, kind == WALK_NEAREST, row);
}

static __host__ __device__ void note_ray_kind(int kind, const lbvh_ray &ray, const Probes &probes,
    const Start &s, Row *row)
{
    if (kind == WALK_HIT) note_hit(ray, probes, s.sphere, s.along, row);
    else note_ray(ray, s.filter, row);
}

namespace {

__global__ void walk_kernel(__grid_constant__ const lbvh_device device, int kind, Probes probes,
    Row *rows)
{
    int32_t const k = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (k >= probes.rows) return;
    Start const s = start_of(probes, kind, k);
    Row *const row = &rows[k];
    row->count = 0;
    if (kind == WALK_BOX) note_overlaps(lbvh_overlap_box(&device, s.box), s.filter, row);
    else if (kind == WALK_POINT)
        note_overlaps(lbvh_overlap_point(&device, s.sphere), s.filter, row);
    else if (kind == WALK_SPHERE)
        note_overlaps(lbvh_overlap_sphere(&device, s.sphere, s.sphere[probes.desc.dim]), s.filter,
            row);
    else if (kind == WALK_LATER) note_overlaps(lbvh_overlap_later(&device, k), s.filter, row);
    else if (kind >= WALK_RAY)
        note_ray_kind(kind, lbvh_ray_cast(&device, s.sphere, s.along, s.t_max), probes, s, row);
    else note_near_kind(kind, lbvh_near_point(&device, s.sphere, s.reach), probes, s, row);
}

} /* namespace */

/* The same as the kernel, on the CPU: the walks of a lbvh_device exist on the device only. */
static void walk(const lbvh *tree, int kind, const Probes &probes, int32_t k, Row *row)
{
    Start const s = start_of(probes, kind, k);
    row->count = 0;
    if (kind == WALK_BOX) note_overlaps(lbvh_overlap_box(tree, s.box), s.filter, row);
    else if (kind == WALK_POINT) note_overlaps(lbvh_overlap_point(tree, s.sphere), s.filter, row);
    else if (kind == WALK_SPHERE)
        note_overlaps(lbvh_overlap_sphere(tree, s.sphere, s.sphere[probes.desc.dim]), s.filter,
            row);
    else if (kind == WALK_LATER) note_overlaps(lbvh_overlap_later(tree, k), s.filter, row);
    else if (kind >= WALK_RAY)
        note_ray_kind(kind, lbvh_ray_cast(tree, s.sphere, s.along, s.t_max), probes, s, row);
    else note_near_kind(kind, lbvh_near_point(tree, s.sphere, s.reach), probes, s, row);
}

/* Along an axis, along a diagonal, anywhere; zero and NaN. */
static std::vector<real> directions_of(int dim, int m)
{
    wl_random r = wl_seed(99);
    std::vector<real> out;
    for (int q = 0; q < m; q++)
        for (int a = 0; a < dim; a++) {
            real const u = 2 * (real)wl_u(&r) - 1;
            if (q % 16 == 10) out.push_back(0);
            else if (q % 32 == 11) out.push_back(not_a_number);
            else if (q % 4 == 0)
                out.push_back(a == q / 4 % dim ? (q % 8 ? (real)-1 : (real)1) : q % 3 ? (real)0 :
                    (real)-0.0);
            else if (q % 4 == 1) out.push_back(q >> a & 4 ? (real)1 : (real)-1);
            else out.push_back(u * 3);
        }
    return out;
}

static void check_walk(Trees &g, int kind, const Probes &host, const Probes &device)
{
    std::vector<Row> want((size_t)host.rows);
    Device<Row> d_rows((size_t)host.rows);
    std::string const before = context;
    context += ", walk " + std::to_string(kind) + ", filter " + std::to_string(host.filter);
    if (host.rows > 0) memset((void *)want.data(), 0xA5, want.size() * sizeof(Row));
    for (int32_t k = 0; k < host.rows; k++) walk(&g.serial, kind, host, k, &want[(size_t)k]);
    launch(host.rows, walk_kernel, g.gpu.device, kind, device, d_rows.p);
    CHECK(same_bits(d_rows.get(), want));
    context = before;
}

static void check_walks(Trees &g, const Input &in, const OnDevice &on_device)
{
    int const dim = in.desc.dim, m = 70;
    std::vector<real> const boxes = queries_of(g.serial, LBVH_BOXES, m, 5),
        spheres = queries_of(g.serial, LBVH_SPHERES, m, 6), directions = directions_of(dim, m);
    Device<real> d_boxes(boxes), d_spheres(spheres), d_directions(directions);
    size_t const stride = in.stride ? in.stride : in.width * sizeof(real);
    Probes host = {host_desc(in), boxes.data(), spheres.data(), directions.data(), in.data.data(),
        stride, 0xFFFFFFFFu, m};
    Probes device = {device_desc(in, on_device), d_boxes.p, d_spheres.p, d_directions.p,
        on_device.data.p, stride, 0xFFFFFFFFu, m};
    for (int kind = 0; kind < WALKS; kind++) {
        if ((kind == WALK_HIT || kind == WALK_CLOSEST) &&
            (in.desc.kind != LBVH_TRIANGLES || dim != 3))
            continue;
        host.rows = device.rows = kind == WALK_LATER ? std::min(g.serial.n, 300) : m;
        host.filter = device.filter = kind % 2 ? 0xFFFFFFFFu : 0x15u;
        check_walk(g, kind, host, device);
    }
}

/* ---- boxes ---- */

static void check_boxes(Trees &g, const Input &in, const OnDevice &on_device)
{
    lbvh_desc host = host_desc(in), device = device_desc(in, on_device);
    std::vector<real> want(2 * (size_t)in.desc.dim * (size_t)in.n + 1);
    Device<real> d_boxes(want.size());
    host.skip_invalid = 1;
    CHECK_RESULT(lbvh_boxes(&host, in.data.data(), in.stride, in.n, want.data(), nullptr), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_boxes(&g.gpu, &device, on_device.data.p, in.stride, in.n, d_boxes.p,
        stream), LBVH_OK);
    memset(&want.back(), 0xA5, sizeof(real));
    CHECK(same_bits(d_boxes.get(), want));
}
