/* Does more/nearfield.hpp cost more than the C calls behind it? Each piece of work in both forms,
   in turns; the fastest of each, and C++ over C.

       bench_nearfield [particles]            a table: milliseconds, and the ratio
       bench_nearfield WORK c|cpp|none [particles]   one form, once, or what comes before: for
                                                     valgrind --tool=callgrind

   SPDX-License-Identifier: MIT OR Unlicense */
#ifndef BENCH_LINKED
#define NEARFIELD_IMPLEMENTATION
#endif
#include "more/nearfield.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct scene {
    std::vector<float> pos;
    float radius;
    std::vector<std::array<float, 6>> boxes;
    nearfield::grid grid;
    nearfield::tree tree;
    nearfield::list list;
    nearfield::rows rows;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> ids;
};

void make(scene &s, int n)
{
    std::uint32_t state = 5;
    s.pos.resize(static_cast<std::size_t>(3 * n));
    for (float &x : s.pos) {
        state = state * 1664525u + 1013904223u;
        x = static_cast<float>(state >> 8) / 16777216.0f;
    }
    s.radius = std::cbrt(30 / (4.18879f * static_cast<float>(n)));  /* about 30 neighbours */
    ugrid_desc cells = {};
    cells.max[0] = cells.max[1] = cells.max[2] = 1;
    cells.cell = s.radius;
    s.grid.build(cells, s.pos);
    s.boxes.resize(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < s.boxes.size(); i++)
        for (std::size_t a = 0; a < 3; a++) {
            s.boxes[i][a] = s.pos[3 * i + a];
            s.boxes[i][a + 3] = s.pos[3 * i + a] + s.radius;
        }
    s.tree.build({}, s.boxes);
    nlist_desc desc = {};
    desc.radius = s.radius;
    desc.history = sizeof(float);
    s.list.build(desc, s.grid, s.pos);
    s.grid.neighbors(s.radius, s.rows);
    s.offsets.resize(s.rows.offsets.size());
    s.ids.resize(s.rows.ids.size());
}

std::uint64_t hash(std::uint64_t sum, std::int32_t i, std::int32_t j)
{
    return sum + static_cast<std::uint64_t>(i ^ j);
}

/* ------------------------------------------------------------------------------------------------
   each work, in C and in C++: both return the same number
   ---------------------------------------------------------------------------------------------- */

std::uint64_t within_c(scene &s)
{
    std::uint64_t sum = 0;
    const ugrid *grid = &*s.grid;
    for (std::int32_t i = 0; i < grid->n; i++) {
        const float *p = &s.pos[static_cast<std::size_t>(3 * i)];
        ugrid_near walk = ugrid_near_within(grid, p, s.radius);
        float q[3];
        while (ugrid_next(&walk)) {
            ugrid_point(grid, walk.place, q);
            if (ugrid_distance2(grid, p, q) <= s.radius * s.radius) sum = hash(sum, i, walk.id);
        }
    }
    return sum;
}
std::uint64_t within_cpp(scene &s)
{
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < s.grid.size(); i++)
        for (auto hit : s.grid.within(&s.pos[static_cast<std::size_t>(3 * i)], s.radius))
            sum = hash(sum, i, hit.id);
    return sum;
}

int add_pair(void *user, std::int32_t i, std::int32_t j)
{
    *static_cast<std::uint64_t *>(user) = hash(*static_cast<std::uint64_t *>(user), i, j);
    return 0;
}
std::uint64_t each_pair_c(scene &s)
{
    std::uint64_t sum = 0;
    ugrid_each_pair(&*s.grid, s.radius, UGRID_HALF, add_pair, &sum);
    return sum;
}
std::uint64_t each_pair_cpp(scene &s)
{
    std::uint64_t sum = 0;
    s.grid.each_pair(s.radius, [&](std::int32_t i, std::int32_t j) { sum = hash(sum, i, j); });
    return sum;
}
std::uint64_t pairs_cpp(scene &s)
{
    std::uint64_t sum = 0;
    for (auto [i, j] : s.grid.pairs(s.radius)) sum = hash(sum, i, j);
    return sum;
}

std::uint64_t lists_c(scene &s)
{
    std::int64_t needed = 0;
    ugrid_neighbors(&*s.grid, s.radius, 0, s.offsets.data(), s.ids.data(),
                    static_cast<std::int64_t>(s.ids.size()), &needed);
    return static_cast<std::uint64_t>(needed);
}
std::uint64_t lists_cpp(scene &s)
{
    s.grid.neighbors(s.radius, s.rows);
    return s.rows.ids.size();
}

std::uint64_t overlaps_c(scene &s)
{
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < s.tree->n; i++) {
        lbvh_overlap o = lbvh_overlap_box(&*s.tree, s.boxes[static_cast<std::size_t>(i)].data());
        while (lbvh_next(&o)) sum = hash(sum, i, o.id);
    }
    return sum;
}
std::uint64_t overlaps_cpp(scene &s)
{
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < s.tree.size(); i++)
        for (auto hit : s.tree.overlaps(s.boxes[static_cast<std::size_t>(i)]))
            sum = hash(sum, i, hit.id);
    return sum;
}

std::uint64_t tree_pairs_c(scene &s)
{
    std::uint64_t sum = 0;
    for (std::int32_t place = 0; place < s.tree->n; place++) {
        std::int32_t const i = s.tree->node[s.tree->first_leaf + place].link;
        lbvh_overlap o = lbvh_overlap_later(&*s.tree, place);
        while (lbvh_next(&o)) sum = hash(sum, i, o.id);
    }
    return sum;
}
std::uint64_t tree_pairs_cpp(scene &s)
{
    std::uint64_t sum = 0;
    for (auto [i, j] : s.tree.pairs()) sum = hash(sum, i, j);
    return sum;
}
std::uint64_t tree_each_c(scene &s)
{
    std::uint64_t sum = 0;
    lbvh_each_pair(&*s.tree, add_pair, &sum);
    return sum;
}
std::uint64_t tree_each_cpp(scene &s)
{
    std::uint64_t sum = 0;
    s.tree.each_pair([&](std::int32_t i, std::int32_t j) { sum = hash(sum, i, j); });
    return sum;
}

std::uint64_t contacts_c(scene &s)
{
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < s.list->n; i++) {
        nlist_each e = nlist_of(&*s.list, i);
        while (nlist_next(&e)) {
            *static_cast<float *>(e.history) += 1;
            sum = hash(sum, i, e.id);
        }
    }
    return sum;
}
std::uint64_t rows_cpp(scene &s)
{
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < s.list.size(); i++)
        for (auto c : s.list.of(i)) {
            c.history<float>() += 1;
            sum = hash(sum, i, c.id);
        }
    return sum;
}
std::uint64_t contacts_cpp(scene &s)
{
    std::uint64_t sum = 0;
    s.list.each_contact([&](auto c) {
        c.template history<float>() += 1;
        sum = hash(sum, c.i, c.id);
    });
    return sum;
}

int add_one(void *user, std::int32_t i, std::int32_t j, void *, float *own, float *)
{
    own[0] = static_cast<float>(i ^ j) * *static_cast<float *>(user);
    return 1;
}
std::uint64_t sum_of(scene &s, bool cpp)
{
    std::vector<float> sums(static_cast<std::size_t>(s.list.size()));
    nlist_sums how = {};
    float scale = 0.5f;
    how.values = 1;
    if (!cpp) nlist_sum(&*s.list, &how, add_one, &scale, sums.data());
    else s.list.sum(how, [&](std::int32_t i, std::int32_t j, void *, float *own, float *) {
        own[0] = static_cast<float>(i ^ j) * scale;
    }, sums);
    return static_cast<std::uint64_t>(sums[7]);
}
std::uint64_t sum_c(scene &s) { return sum_of(s, false); }
std::uint64_t sum_cpp(scene &s) { return sum_of(s, true); }

using form = std::uint64_t(scene &);
struct work { const char *name; form *c, *cpp; };
work const works[] = {
    {"within", within_c, within_cpp},       {"each_pair", each_pair_c, each_pair_cpp},
    {"pairs", each_pair_c, pairs_cpp},      {"neighbors", lists_c, lists_cpp},
    {"overlaps", overlaps_c, overlaps_cpp}, {"tree_pairs", tree_pairs_c, tree_pairs_cpp},
    {"tree_each_pair", tree_each_c, tree_each_cpp}, {"row", contacts_c, rows_cpp},
    {"each_contact", contacts_c, contacts_cpp}, {"sum", sum_c, sum_cpp},
};

double time_of(scene &s, form *run, std::uint64_t *answer)
{
    auto const begin = std::chrono::steady_clock::now();
    *answer = run(s);
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
    return took.count();
}

int compare(scene &s)
{
    int wrong = 0;
    std::printf("%-16s %10s %10s %8s\n", "work", "C ms", "C++ ms", "C++ / C");
    for (const work &w : works) {
        double c = 1e30, cpp = 1e30;
        for (int turn = 0; turn < 15; turn++) {
            std::uint64_t a = 0, b = 1;
            c = std::fmin(c, time_of(s, w.c, &a));
            cpp = std::fmin(cpp, time_of(s, w.cpp, &b));
            wrong |= a != b;
        }
        std::printf("%-16s %10.2f %10.2f %8.2f\n", w.name, c, cpp, cpp / c);
    }
    if (wrong) std::printf("the two forms differ\n");
    return wrong;
}

} /* namespace */

int main(int argc, char **argv)
{
    scene s;
    for (const work &w : works) {
        if (argc < 3 || std::strcmp(argv[1], w.name) != 0) continue;
        make(s, argc > 3 ? std::atoi(argv[3]) : 3000);
        std::uint64_t answer = 0;
        if (std::strcmp(argv[2], "c") == 0) answer = w.c(s);
        if (std::strcmp(argv[2], "cpp") == 0) answer = w.cpp(s);
        std::printf("%llu\n", static_cast<unsigned long long>(answer));
        return 0;
    }
    make(s, argc > 1 ? std::atoi(argv[1]) : 100000);
    return compare(s);
}
