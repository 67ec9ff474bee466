/* settled_gpu.h - spheres that have fallen into a box by their own weight, as in the source's
   cases 1 and 5 (004, section 6.3), before they are measured: beside the lattice of other groups.
   SPDX-License-Identifier: MIT OR Unlicense

   A part of bench_nlist.cu: included in its namespace. They fall by dem.h with history: a small
   sphere has the mass 1, and so little weight that those at the bottom overlap by a few hundredths.
   Where they have come to rest they stay, and all rows measure the same packing. */

#ifndef SETTLED_GPU_H
#define SETTLED_GPU_H

/* On a cubic lattice, moved by a little; mass 1. */
__global__ void settled_start_kernel(float *pos, float *vel, float *spin, int32_t n, int32_t side,
                                     float spacing)
{
    int64_t const i = thread_index();
    if (i >= n) return;
    int32_t const k = static_cast<int32_t>(i);
    int32_t const at[3] = {k % side, k / side % side, k / side / side};
    for (int a = 0; a < 3; a++) {
        float const jitter = (phase_of(k, a) / pi - 1) * 0.4f * (spacing - 1);
        pos[4 * i + a] = spacing * (static_cast<float>(at[a]) + 0.5f) + jitter;
        vel[4 * i + a] = spin[4 * i + a] = 0;
    }
    pos[4 * i + 3] = 0.5f;
    vel[4 * i + 3] = 1;
    spin[4 * i + 3] = __int_as_float(k);
}

/* The mass goes with the volume: that of a sphere of radius `small` is 1. */
__global__ void settled_mass_kernel(const float *pos, float *vel, int32_t n, float small)
{
    int64_t const i = thread_index();
    if (i >= n) return;
    float const wide = pos[4 * i + 3] / small;
    for (int a = 0; a < 3; a++) vel[4 * i + a] = 0;
    vel[4 * i + 3] = 1 / (wide * wide * wide);
}

/* Floor and four walls push, then the sphere moves. No speed is above `most`: spheres that overlap
   at the start part without flying away. */
__global__ void settled_move_kernel(__grid_constant__ const dem_system s, const float *sums,
                                    float most)
{
    int64_t const i = thread_index();
    if (i >= s.n) return;
    float sum[DEM_SUMS];
    for (int v = 0; v < DEM_SUMS; v++) sum[v] = sums[DEM_SUMS * i + v];
    dem_planes(&s, static_cast<int32_t>(i), sum);
    dem_move(&s, static_cast<int32_t>(i), sum);
    float *const v = s.vel + 4 * i;
    float const speed2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (!(speed2 > most * most)) return;
    for (int a = 0; a < 3; a++) v[a] *= most / sqrtf(speed2);
}

/* For the mean of the speeds squared, in billionths of speed2. */
__global__ void settled_speed_kernel(const float *vel, int32_t n, float speed2,
                                     unsigned long long *sum)
{
    int64_t const i = thread_index();
    unsigned long long part = 0;
    if (i < n) {
        float const *v = vel + 4 * i;
        part = static_cast<unsigned long long>(1e9f * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) /
                                               speed2);
    }
    add_to(sum, part);
}

/* diameter: of a small sphere. The box is as wide as s.edge and open above. A column of spheres
   weighs 30 whatever its height. */
dem_system settled_system(const spheres &s, float diameter)
{
    dem_system system = system_of(s);
    float const gravity = 30 * diameter * diameter / s.edge;
    system.dt = static_cast<float>(dem_contact_time(&system.between, 0.5) / 30);
    system.gravity[2] = -gravity;
    system.between = system.walls = dem_material_of(stiffness, 0.5, 0.3, 0.3);
    system.planes = 5;
    for (int k = 0; k < 4; k++) {
        system.plane[k].normal[k / 2] = k % 2 ? -1.0f : 1.0f;
        system.plane[k].offset = k % 2 ? -s.edge : 0;
    }
    system.plane[4].normal[2] = 1;
    return system;
}

/* For four times as long as a free fall takes from a fifth of the box's height to the floor, and
   at most half as fast as that. */
void settle(stepper &t, float diameter)
{
    dem_system system = settled_system(t.s, diameter);
    float const fall = 0.2f * t.s.edge, speed2 = -2 * system.gravity[2] * fall,
                most = 0.5f * std::sqrt(speed2);
    float const time = 4 * std::sqrt(2 * fall / -system.gravity[2]);
    int32_t const steps = bench.small ? 40 : static_cast<int32_t>(time / system.dt);
    for (int32_t step = 0; step < steps; step++) {
        t.index();
        t.search();
        t.clear();
        must(nlist_cuda_sum<DEM_SUMS>(&t.list.gpu, &t.how, dem_spheres_op{system}, t.sums.data,
                                      stream));
        launch(t.s.n, settled_move_kernel, system, t.sums.data, most);
        if (step % 200 == 0) must(nlist_cuda_check(&t.list.gpu, stream));
    }
    must(nlist_cuda_check(&t.list.gpu, stream));
    int64_t const motion = device_sum([&](unsigned long long *sum) {
        launch(t.s.n, settled_speed_kernel, t.s.vel.data, t.s.n, speed2, sum);
    });
    double const rest = 1e-9 * static_cast<double>(motion) / t.s.n;
    std::printf("  %s: %d steps, %.2f contacts each; energy of motion %.1e of that of the fall\n",
                t.s.name.c_str(), static_cast<int>(steps),
                2.0 * static_cast<double>(t.list.gpu.device.list.total) / t.s.n, rest);
    bench_check(bench.small || rest < 1e-2, "settled: they still move");
}

/* A list for the fall: with history, and room for what may come. */
void settled_list(stepper &t)
{
    t.desc.history = DEM_HISTORY;
    t.choose(NLIST_HYBRID, 8, int64_t{4} * t.s.n);
}

/* Everything of a sphere into the order of the cells. */
void settled_sort(spheres &s, float cell)
{
    stepper t(s);
    t.cells = cells_of(s, cell);
    t.index();
    t.sort();
    must(cudaStreamSynchronize(stream));
}

/* Of diameter 1, fallen. */
spheres settled_spheres(int32_t n)
{
    std::size_t const numbers = 4 * static_cast<std::size_t>(n);
    int32_t const side = static_cast<int32_t>(std::ceil(std::cbrt(static_cast<double>(n))));
    float const spacing = 1.03f;
    spheres s = {"settled-" + size_name(n),
                 n,
                 wl_side(n, 4, 1),
                 1,
                 spacing * static_cast<float>(side),
                 false,
                 device_array<float>(numbers),
                 device_array<float>(numbers),
                 device_array<float>(numbers)};
    launch(n, settled_start_kernel, s.pos.data, s.vel.data, s.spin.data, n, side, spacing);
    stepper t(s);
    settled_list(t);
    settle(t, 1);
    settled_sort(s, 1);
    return s;
}

/* ---- copies of a heap ------------------------------------------------------------------------ */

/* Copy k of `one` stands at column k % across, row k / across. Every second one is its mirror
   image, so that what lies at a wall lies against its own image. */
__global__ void settled_copy_kernel(const float *one, int32_t n, float edge, int32_t across,
                                    float *pos, float *vel, float *spin, int64_t count)
{
    int64_t const i = thread_index();
    if (i >= count) return;
    const float *const from = one + 4 * (i % n);
    int32_t const copy = static_cast<int32_t>(i / n), at[2] = {copy % across, copy / across};
    for (int a = 0; a < 2; a++)
        pos[4 * i + a] = edge * static_cast<float>(at[a]) + (at[a] % 2 ? edge - from[a] : from[a]);
    for (int a = 2; a < 4; a++) pos[4 * i + a] = from[a];
    for (int a = 0; a < 4; a++) vel[4 * i + a] = a == 3 ? 1 : 0;
    for (int a = 0; a < 4; a++) spin[4 * i + a] = a == 3 ? __int_as_float(static_cast<int>(i)) : 0;
}

int64_t settled_pairs(const spheres &s, float reach)
{
    gpu_grid grid;
    ugrid_desc const desc = cells_of(s, reach);
    must(ugrid_cuda_build(&grid.gpu, &desc, s.pos.data, DEM_STRIDE, s.n, stream));
    return pairs_in(grid, reach);
}

/* copies side by side, as near to a square as their number allows; in the order of the cells. A
   copy is as wide and as high as the heap was, so the weight on each sphere stays what it was. */
spheres settled_copies(const spheres &one, int32_t copies)
{
    int32_t across = static_cast<int32_t>(std::sqrt(static_cast<double>(copies)));
    while (copies % across) across--;
    int64_t const n = int64_t{one.n} * copies;
    std::size_t const numbers = 4 * static_cast<std::size_t>(n);
    spheres s = {"settled-" + size_name(static_cast<int32_t>(n)),
                 static_cast<int32_t>(n),
                 wl_side(static_cast<int32_t>(n), 4, 1),
                 one.contact,
                 one.edge,
                 false,
                 device_array<float>(numbers),
                 device_array<float>(numbers),
                 device_array<float>(numbers)};
    s.wide[0] = one.edge * static_cast<float>(across);
    s.wide[1] = one.edge * static_cast<float>(copies / across);
    launch(n, settled_copy_kernel, one.pos.data, one.n, one.edge, across, s.pos.data, s.vel.data,
           s.spin.data, n);
    float const near = 1.1f; /* what touches, and more */
    double const each = static_cast<double>(settled_pairs(s, near)) /
                        (static_cast<double>(settled_pairs(one, near)) * copies);
    std::printf("  %d copies of a heap of %d, %d by %d: %.4f of its near pairs each\n",
                static_cast<int>(copies), static_cast<int>(one.n), static_cast<int>(across),
                static_cast<int>(copies / across), each);
    bench_check(each > 0.999 && (bench.small || each < 1.05), "settled: pairs of the copies");
    settled_sort(s, 1);
    return s;
}

/* n in one heap, or in copies of one of a million (--small: four copies): a fall of 100 million
   would take a hundred times as long a step, and five times the steps. */
spheres settled_heaps(int32_t n)
{
    int32_t const most = bench.small ? (n + 3) / 4 : 1000000;
    spheres one = settled_spheres(std::min(n, most));
    return n / most > 1 ? settled_copies(one, n / most) : std::move(one);
}

/* As wide as it takes to have so many neighbours: at rest, spheres that touch are fewer. */
void settled_reach(spheres &s, double neighbors)
{
    s.contact = find_contact(s, neighbors, 1.4f);
    launch(s.n, radius_kernel, s.pos.data, s.n, s.contact / 2);
}

/* The mixture of table 6.13, fallen. */
spheres settled_mixture(int32_t small)
{
    spheres s = bidisperse(small);
    s.name = "settled-two-" + size_name(small);
    launch(s.n, settled_mass_kernel, s.pos.data, s.vel.data, s.n, 0.001f);
    device_array<float> radii(static_cast<std::size_t>(s.n));
    launch(s.n, radii_kernel, s.pos.data, s.n, radii.data);
    stepper t(s);
    t.by_tree = true;
    t.nodes.kind = LBVH_SPHERES;
    t.desc.radius = 0;
    t.desc.radii = radii.data;
    settled_list(t);
    settle(t, 0.002f);
    settled_sort(s, 0.002f);
    return s;
}

/* 100 million as in table 6.3; else a million, also of two sizes. */
void bench_settled(int32_t n)
{
    bool const large = n > 1000000;
    bench_title("settled: spheres that lie as they fell, by grid and tree (source: cases 1 and 5, "
                "tables 6.2, 6.3, 6.12 and 6.13)",
                nullptr);
    {
        spheres s = settled_heaps(n);
        settled_reach(s, 7.56);
        monodisperse_rows(s);
        if (!large) settled_reach(s, 9.31);
        if (!large) width_matrix("settled", s, 9.31, &table_6_2, "table 6.2, 1M spheres");
        if (n >= 100000000)
            width_matrix("settled", s, 7.56, &table_6_3, "table 6.3, 100M spheres");
    }
    if (large) return;
    spheres s = settled_mixture(n);
    bidisperse_rows(s, n);
}

#endif /* SETTLED_GPU_H */
