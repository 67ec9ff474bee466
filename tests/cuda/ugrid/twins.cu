/* twins.cu - a part of test_ugrid.cu: searches for two places per thread, where many distances are
   the radius, or one rounding to either side of it.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifdef CUDA_EMU
static const int lattice[3] = {30, 7, 6}, fewest_axes = 2;
#else
static const int lattice[3] = {3701, 12, 12}, fewest_axes = 3;
#endif

/* A lattice, of which two coordinates in three are moved by one rounding. */
static std::vector<real> rough_lattice(int dim, real origin, real pitch)
{
    std::vector<real> pos;
    int const layers = dim == 3 ? lattice[2] : 1, rows = dim == 3 ? lattice[1] : 2 * lattice[1];
    for (int k = 0; k < lattice[0] * rows * layers; k++) {
        int const at[3] = {k % lattice[0], k / lattice[0] % rows, k / lattice[0] / rows};
        for (int a = 0; a < dim; a++) {
            real const x = origin + pitch * (real)at[a];
            uint32_t const moved = scattered((uint64_t)(3 * k + a)) % 3;
            pos.push_back(moved == 0 ? x : std::nextafter(x, moved == 1 ? -1e9f : 1e9f));
        }
    }
    return pos;
}

/* The pitch in binary: exact ties. In decimal: distances that differ by roundings. And so small
   that squares of coordinates have few digits. */
static void test_twins()
{
    static const struct { real origin, pitch; } places[] = {{0, (real)0.0625},
        {(real)5.3, (real)0.1}, {0, (real)1.0842021724855044e-19} /* 2^-63 */};
    int k = 0;
    for (int dim = fewest_axes; dim <= 3; dim++)
        for (auto at : places) {
            std::vector<real> const pos = rough_lattice(dim, at.origin, at.pitch);
            Device<real> const d_pos(pos);
            Grids g;
            ugrid_desc d = {};
            d.dim = dim;
            for (int a = 0; a < dim; a++) {
                d.min[a] = at.origin;
                d.max[a] = at.origin + at.pitch * (real)lattice[a] * (dim == 2 && a ? 2 : 1);
            }
            d.cell = 2 * at.pitch;
            d.walk = UGRID_STRIPS;
            d.method = UGRID_COUNT;
            context = "twins: dim " + std::to_string(dim) + ", pitch " + std::to_string(at.pitch);
            if (!build(&g, d, pos, d_pos)) continue;
            CHECK(sizeof(real) == 8 ||
                ugrid_i_twins(&g.gpu.device.grid, ugrid_path_of(&g.gpu.device.grid)));
            for (int bit = -1; bit <= 1; bit++, k++) {
                real const two = 2 * at.pitch,
                    radius = bit == 0 ? two : std::nextafter(two, bit < 0 ? (real)0 : (real)9);
                int const flags = (k & 1 ? UGRID_HALF : 0) | (k & 2 ? UGRID_PLACES : 0);
                check_counts(g, radius, flags);
                check_neighbors(g, radius, flags);
            }
        }
}
