/* triangles.cu - a part of test_nlist.cu: spheres that roll over a mesh: keys, order, history
   and events on both sides.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A patch of hills, of indexed triangles or of loose ones. */
struct Mesh {
    std::vector<real> vertices;
    std::vector<int32_t> indices;
    size_t stride;
    int32_t vertex_count, triangles;
    std::vector<real> thickness;    /* two numbers each, of which the first counts; or empty */
    std::vector<uint32_t> masks;    /* or empty */
};

/* A thickness for each triangle, and masks that let a third of them through. */
static void thicken(Mesh *mesh, wl_random *r)
{
    for (int32_t t = 0; t < mesh->triangles; t++) {
        mesh->thickness.push_back(t % 3 ? (real)(0.05 * (double)wl_u(r)) : 0);
        mesh->thickness.push_back(not_a_number);
        mesh->masks.push_back(t % 3 ? 3u : 1u);
    }
}

static void put_corner(Mesh *mesh, int x, int y, int edge)
{
    mesh->vertices.push_back((real)x / (real)edge);
    mesh->vertices.push_back((real)y / (real)edge);
    /* flat on one side */
    mesh->vertices.push_back((real)((x * 7 + y * 5) % 3) * (real)0.03 * (real)(x > edge / 2));
}

static void put_triangle(Mesh *mesh, bool indexed, const int corner[3][2], int edge)
{
    for (int v = 0; v < 3; v++) {
        if (indexed) mesh->indices.push_back(corner[v][1] * (edge + 1) + corner[v][0]);
        else put_corner(mesh, corner[v][0], corner[v][1], edge);
    }
    mesh->triangles++;
}

static Mesh mesh_of(int edge, bool indexed, bool wide)
{
    Mesh mesh = {};
    for (int y = 0; y <= edge && indexed; y++)
        for (int x = 0; x <= edge; x++) {
            put_corner(&mesh, x, y, edge);
            if (wide) mesh.vertices.insert(mesh.vertices.end(), 2, not_a_number);
        }
    for (int y = 0; y < edge; y++)
        for (int x = 0; x < edge; x++) {
            int const low[3][2] = {{x, y}, {x + 1, y}, {x + 1, y + 1}},
                high[3][2] = {{x, y}, {x + 1, y + 1}, {x, y + 1}};
            put_triangle(&mesh, indexed, low, edge);
            put_triangle(&mesh, indexed, high, edge);
        }
    if (indexed) mesh.vertex_count = (edge + 1) * (edge + 1);
    if (indexed && wide) mesh.stride = 5 * sizeof(real);
    return mesh;
}

static lbvh_desc mesh_tree(const Mesh &mesh, const int32_t *indices)
{
    lbvh_desc d = {};
    d.kind = LBVH_TRIANGLES;
    if (!mesh.indices.empty()) d.indices = indices, d.vertices = mesh.vertex_count;
    return d;
}

static nlist_mesh mesh_desc(const Mesh &mesh, const real *vertices, const int32_t *indices)
{
    nlist_mesh m = {};
    m.vertices = vertices;
    m.stride = mesh.stride;
    m.vertex_count = mesh.vertex_count;
    m.indices = mesh.indices.empty() ? nullptr : indices;
    m.triangles = mesh.triangles;
    return m;
}

struct MeshOnDevice {
    Device<real> vertices;
    Device<int32_t> indices;
    Device<real> thickness;
    Device<uint32_t> masks;
    explicit MeshOnDevice(const Mesh &mesh)
        : vertices(mesh.vertices), indices(mesh.indices), thickness(mesh.thickness),
          masks(mesh.masks)
    {
    }
};

/* The thickness and masks of a mesh, on either side. */
static void give_thickness(nlist_mesh *m, const Mesh &mesh, const real *thickness,
    const uint32_t *masks)
{
    if (mesh.thickness.empty()) return;
    m->thickness = thickness;
    m->thickness_stride = 2 * sizeof(real);
    m->thickest = (real)0.05;
    m->masks = masks;
}

/* Trees over the triangles, on both sides. */
static void build_mesh_trees(Both *b, const Mesh &mesh, const MeshOnDevice &on_device)
{
    lbvh_desc const host = mesh_tree(mesh, mesh.indices.data()),
        device = mesh_tree(mesh, on_device.indices.p);
    CHECK(lbvh_build(&b->tree, &host, mesh.vertices.data(), mesh.stride, mesh.triangles) ==
        LBVH_OK);
    CHECK(lbvh_cuda_build(&b->tree_gpu, &device, on_device.vertices.p, mesh.stride, mesh.triangles,
        stream) == LBVH_OK);
}

static nlist_result mesh_serial(Both *b, const nlist_desc &d, const Mesh &mesh, const Input &in)
{
    nlist_mesh m = mesh_desc(mesh, mesh.vertices.data(), mesh.indices.data());
    give_thickness(&m, mesh, mesh.thickness.data(), mesh.masks.data());
    return nlist_build_mesh(&b->serial, &d, &b->tree, &m, in.pos.data(), in.stride, in.n);
}

static nlist_result mesh_gpu(Both *b, const nlist_desc &d, const Mesh &mesh,
    const MeshOnDevice &mesh_there, const Input &in, const OnDevice &there)
{
    nlist_mesh m = mesh_desc(mesh, mesh_there.vertices.p, mesh_there.indices.p);
    give_thickness(&m, mesh, mesh_there.thickness.p, mesh_there.masks.p);
    return nlist_cuda_build_mesh(&b->gpu, &d, &b->tree_gpu, &m, there.pos.p, in.stride, in.n,
        stream);
}

/* Spheres over the patch, most of them in touch. */
static Input mesh_particles(int n, bool wide, bool radii, wl_random *r)
{
    Input in = {};
    std::vector<real> points;
    in.n = n;
    in.dim = 3;
    in.ordered = true;
    for (int i = 0; i < n; i++) {
        for (int a = 0; a < 2; a++) points.push_back((real)(1.2 * (double)wl_u(r) - 0.1));
        points.push_back((real)(0.2 * (double)wl_u(r) - 0.05));
        if (radii) in.radii.push_back((real)(0.08 * (double)wl_u(r)));
    }
    in.pos = wide ? padded(points, 3) : points;
    in.stride = wide ? 6 * sizeof(real) : 0;
    in.desc.radius = radii ? 0 : (real)0.06;
    in.desc.layout = NLIST_DYNAMIC;
    return in;
}

/* Particles roll over the patch: keys, order, history and events on both sides. */
static void run_mesh(int seed, int steps)
{
    Both b;
    wl_random r = wl_seed((uint64_t)seed);
    Mesh mesh = mesh_of(3 + seed % 5, seed % 2, seed / 2 % 2);
    if (seed % 3 == 1) thicken(&mesh, &r);
    MeshOnDevice const mesh_there(mesh);
    Input in = mesh_particles(std::min(n_max, 150), seed / 4 % 2, seed / 8 % 2, &r);
    for (int32_t i = 0; i < in.n && !mesh.masks.empty(); i++)
        in.masks.push_back(1u + (uint32_t)(i % 2));
    in.desc.history = 4 * (seed % 3);
    in.desc.events = seed / 3 % 2;
    in.desc.deterministic = seed / 2 % 2;
    build_mesh_trees(&b, mesh, mesh_there);
    for (int step = 1; step <= steps; step++) {
        context = "mesh " + std::to_string(seed) + ", step " + std::to_string(step);
        OnDevice const there(in);
        nlist_desc device = device_desc(in, there);
        CHECK_RESULT(mesh_serial(&b, host_desc(in), mesh, in), NLIST_OK);
        if (step % 2) fit_exactly(b.serial, &device), device.width = 0;
        else device.grow = 1;
        CHECK_RESULT(mesh_gpu(&b, device, mesh, mesh_there, in, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        compare(&b, in.desc.deterministic != 0, true);
        if (in.desc.events) check_witnesses(&b);
        if (in.desc.history) stamp_all(&b, nullptr, (uint32_t)(1000 * seed + step));
        for (real &x : in.pos) x += (real)(0.03 * ((double)wl_u(&r) - 0.5));
    }
}

static void test_mesh()
{
    for (int seed = 0; seed < 32; seed++)
        if (chosen((size_t)seed, share, 4)) run_mesh(seed, share > 4 ? 4 : 20);
}

namespace {

/* Whether particle i and the triangle of an entry touch in a step: two in three do. */
__host__ __device__ bool touches_wall(int step, int32_t i, int32_t key)
{
    return scattered(((uint64_t)step << 40) ^ ((uint64_t)i << 20) ^ (uint64_t)key) % 3 > 0;
}

__global__ void touch_walls(__grid_constant__ const nlist_device device, int step)
{
    int32_t const i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    nlist_each e = nlist_of(&device.list, i);
    while (nlist_next(&e)) (void)nlist_touch(&e, touches_wall(step, i, e.id));
}

} /* namespace */

namespace {

/* In each row: the entries that touch have their history counted, by nlist_mesh_touch. */
__host__ __device__ void count_touching(const nlist &list, const nlist_mesh &mesh, int32_t i,
    const real *p, real reach)
{
    nlist_each e = nlist_of(&list, i);
    real q[3];
    while (nlist_next(&e))
        if (nlist_mesh_touch(&list, &mesh, &e, p, reach, q)) ++*(int32_t *)e.history;
}

__global__ void count_touching_kernel(__grid_constant__ const nlist_device device,
    __grid_constant__ const nlist_mesh mesh, const real *pos, real reach)
{
    int32_t const i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < device.list.n) count_touching(device.list, mesh, i, pos + 3 * i, reach);
}

} /* namespace */

/* Lists with a skin that serve three steps each, over triangles with thicknesses of their own: the
   same entries, history and events on both sides. */
static void test_mesh_skin()
{
    for (int seed = 0; seed < 2; seed++) {
        Both b;
        wl_random r = wl_seed((uint64_t)seed);
        Mesh mesh = mesh_of(4, true, false);
        thicken(&mesh, &r);
        MeshOnDevice const mesh_there(mesh);
        Input in = mesh_particles(40, false, false, &r);
        in.desc.history = 4;
        in.desc.events = in.desc.contacts = seed;
        in.desc.skin = (real)0.06;
        build_mesh_trees(&b, mesh, mesh_there);
        nlist_mesh host = mesh_desc(mesh, mesh.vertices.data(), mesh.indices.data()),
            there_mesh = mesh_desc(mesh, mesh_there.vertices.p, mesh_there.indices.p);
        give_thickness(&host, mesh, mesh.thickness.data(), mesh.masks.data());
        give_thickness(&there_mesh, mesh, mesh_there.thickness.p, mesh_there.masks.p);
        for (int step = 0; step < 9; step++) {
            context = "mesh skin " + std::to_string(seed) + ", step " + std::to_string(step);
            OnDevice const there(in);
            if (step % 3 == 0) {
                nlist_desc device = device_desc(in, there);
                CHECK_RESULT(mesh_serial(&b, host_desc(in), mesh, in), NLIST_OK);
                fit_exactly(b.serial, &device), device.width = 0;
                CHECK_RESULT(mesh_gpu(&b, device, mesh, mesh_there, in, there), NLIST_OK);
                CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
                compare(&b, false, true);
            }
            for (int32_t i = 0; i < in.n; i++)
                count_touching(b.serial, host, i, in.pos.data() + 3 * i, in.desc.radius);
            launch(in.n, count_touching_kernel, b.gpu.device, there_mesh, there.pos.p,
                in.desc.radius);
            for (real &x : in.pos) x += (real)(0.01 * ((double)wl_u(&r) - 0.5));
        }
    }
}

/* Entries that say whether they touch the mesh (desc.contacts), on both sides: the same events. */
static void test_mesh_contacts()
{
    int64_t met[NLIST_EVENT_KINDS] = {};
    for (int seed = 0; seed < 2; seed++) {
        Both b;
        wl_random r = wl_seed((uint64_t)seed);
        Mesh const mesh = mesh_of(4, true, false);
        MeshOnDevice const mesh_there(mesh);
        Input in = mesh_particles(40, false, false, &r);
        in.desc.history = 4 * seed;
        in.desc.events = in.desc.contacts = 1;
        build_mesh_trees(&b, mesh, mesh_there);
        for (int step = 0; step < 5; step++) {
            context = "mesh contacts " + std::to_string(seed) + ", step " + std::to_string(step);
            OnDevice const there(in);
            nlist_desc device = device_desc(in, there);
            CHECK_RESULT(mesh_serial(&b, host_desc(in), mesh, in), NLIST_OK);
            fit_exactly(b.serial, &device), device.width = 0;
            CHECK_RESULT(mesh_gpu(&b, device, mesh, mesh_there, in, there), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, false, true);
            for (int kind = 0; kind < NLIST_EVENT_KINDS; kind++)
                met[kind] += b.serial.event_count[kind];
            for (int32_t i = 0; i < in.n; i++) {
                nlist_each e = nlist_of(&b.serial, i);
                while (nlist_next(&e)) (void)nlist_touch(&e, touches_wall(step, i, e.id));
            }
            launch(in.n, touch_walls, b.gpu.device, step);
            for (real &x : in.pos) x += (real)(0.03 * ((double)wl_u(&r) - 0.5));
        }
    }
    for (int64_t count : met) CHECK(count > 20);
}
