/* mesh_grid_gpu.h - the uniform grid of triangles of plain_mesh_grid.h, built on the GPU in the
   five steps of the source (004, section 2.3.3).
   SPDX-License-Identifier: MIT OR Unlicense

   A part of bench_nlist.cu: included in its namespace. */

#ifndef MESH_GRID_GPU_H
#define MESH_GRID_GPU_H

__global__ void mesh_count_kernel(__grid_constant__ const plain_mesh_grid grid,
                                  __grid_constant__ const nlist_mesh mesh, int32_t *count)
{
    int64_t const t = thread_index();
    if (t < mesh.triangles)
        count[t] = static_cast<int32_t>(plain_mesh_count(
            plain_mesh_cells_of(&grid, &mesh, static_cast<int32_t>(t))));
}

__global__ void mesh_fill_kernel(__grid_constant__ const plain_mesh_grid grid,
                                 __grid_constant__ const nlist_mesh mesh, const int32_t *first,
                                 uint32_t *cell_of, int32_t *triangle)
{
    int64_t const t = thread_index();
    if (t >= mesh.triangles) return;
    plain_cells const c = plain_mesh_cells_of(&grid, &mesh, static_cast<int32_t>(t));
    int32_t at[3] = {c.low[0], c.low[1], c.low[2]}, place = first[t];
    do {
        cell_of[place] = static_cast<uint32_t>(plain_mesh_number(&grid, at));
        triangle[place++] = static_cast<int32_t>(t);
    } while (plain_mesh_step(&c, at));
}

__global__ void mesh_start_kernel(__grid_constant__ const plain_mesh_grid grid)
{
    int64_t const e = thread_index();
    if (e < grid.entries && (e == 0 || grid.cell_of[e] != grid.cell_of[e - 1]))
        grid.start[grid.cell_of[e]] = static_cast<int32_t>(e);
}

/* Search and force in one kernel, as in the source's old code: nothing is kept of a contact. */
__global__ void mesh_forces_kernel(__grid_constant__ const plain_mesh_grid grid,
                                   __grid_constant__ const dem_system system, float reach,
                                   float *sums)
{
    int64_t const i = thread_index();
    float own[DEM_SUMS] = {};
    if (i >= system.n) return;
    const float *const p = system.pos + 4 * i;
    plain_mesh_near near = plain_mesh_around(&grid, &system.mesh, p, reach);
    for (int32_t key; (key = plain_mesh_contact(&near, p, reach)) >= 0;)
        dem_triangle(&system, static_cast<int32_t>(i), key, nullptr, own);
    for (int v = 0; v < DEM_SUMS; v++) sums[DEM_SUMS * i + v] = own[v];
}

/* How many contacts all spheres have. */
__global__ void mesh_contacts_kernel(__grid_constant__ const plain_mesh_grid grid,
                                     __grid_constant__ const dem_system system, float reach,
                                     unsigned long long *sum)
{
    int64_t const i = thread_index();
    unsigned long long contacts = 0;
    if (i < system.n) {
        const float *const p = system.pos + 4 * i;
        plain_mesh_near near = plain_mesh_around(&grid, &system.mesh, p, reach);
        while (plain_mesh_contact(&near, p, reach) >= 0) contacts++;
    }
    add_to(sum, contacts);
}

/* Triangles in the cells of a box. Memory is taken once, for the triangles as they lie: the source
   takes it in every step. */
struct mesh_grid {
    plain_mesh_grid grid;
    nlist_mesh mesh;
    device_array<int32_t> count, first, start;
    device_array<uint32_t> cell_of, sorted_cells;
    device_array<int32_t> triangle, sorted_triangles;
    std::size_t scan_bytes = 0, sort_bytes = 0;
    device_array<char> temp;

    mesh_grid(const plain_mesh_grid &over, const nlist_mesh &of)
        : grid(over), mesh(of), count(triangles()), first(triangles()),
          start(plain_mesh_grid_cells(&grid)), cell_of(room()), sorted_cells(cell_of.count),
          triangle(cell_of.count), sorted_triangles(cell_of.count), temp(bytes())
    {
        grid.start = start.data;
        grid.cell_of = reinterpret_cast<int32_t *>(sorted_cells.data);
        grid.triangle = sorted_triangles.data;
    }
    std::size_t triangles() const { return static_cast<std::size_t>(mesh.triangles); }
    /* Entries, counted on the device. */
    std::size_t room()
    {
        launch(mesh.triangles, mesh_count_kernel, grid, mesh, count.data);
        grid.entries = sum_of(count);
        bench_check(grid.entries < INT32_MAX && start.count < INT32_MAX,
                    "walls: more entries or cells than an int32_t counts");
        return static_cast<std::size_t>(grid.entries);
    }
    /* The bits of a cell's number. */
    int bits() const
    {
        int bits = 1;
        while (start.count >> bits) bits++;
        return bits;
    }
    void scan(void *memory)
    {
        must(cub::DeviceScan::ExclusiveSum(memory, scan_bytes, count.data, first.data,
                                           mesh.triangles, stream));
    }
    void sort(void *memory)
    {
        must(cub::DeviceRadixSort::SortPairs(memory, sort_bytes, cell_of.data, sorted_cells.data,
                                             triangle.data, sorted_triangles.data,
                                             static_cast<int>(grid.entries), 0, bits(), stream));
    }
    std::size_t bytes()
    {
        scan(nullptr);
        sort(nullptr);
        return scan_bytes > sort_bytes ? scan_bytes : sort_bytes;
    }
    void build()
    {
        launch(mesh.triangles, mesh_count_kernel, grid, mesh, count.data);
        scan(temp.data);
        launch(mesh.triangles, mesh_fill_kernel, grid, mesh, first.data, cell_of.data,
               triangle.data);
        sort(temp.data);
        must(cudaMemsetAsync(start.data, 0xFF, start.count * sizeof(int32_t), stream));
        launch(grid.entries, mesh_start_kernel, grid);
    }
    void forces(const dem_system &system, float reach, float *sums)
    {
        launch(system.n, mesh_forces_kernel, grid, system, reach, sums);
    }
    int64_t contacts(const dem_system &system, float reach)
    {
        return device_sum([&](unsigned long long *sum) {
            launch(system.n, mesh_contacts_kernel, grid, system, reach, sum);
        });
    }
    double mib() const
    {
        return (4.0 * static_cast<double>(start.count) + 16.0 * static_cast<double>(grid.entries) +
                8.0 * static_cast<double>(count.count) + static_cast<double>(temp.count)) /
               1048576;
    }
};

#endif /* MESH_GRID_GPU_H */
