/* Tests of more/nearfield.hpp: the same for floats and doubles, in one program, against brute force
   and against the C calls. run.sh builds it, with sanitizers too. A line for each test.
   SPDX-License-Identifier: MIT OR Unlicense */
#define NEARFIELD_DOUBLE
#define LBVH_WITH_WORLD
#define NBODY_WITH_FUNCTION
#include "more/nearfield.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

namespace {

int failures = 0;

void expect(bool right, const char *what, int line)
{
    if (right) return;
    failures++;
    std::printf("test_nearfield.cpp:%d: not so: %s\n", line, what);
}
#define EXPECT(what) expect(what, #what, __LINE__)

/* What `call` throws; code -1: nothing. */
template <class Call> nearfield::error thrown_by(Call call)
{
    try {
        call();
    } catch (const nearfield::error &error) {
        return error;
    }
    return nearfield::error("nothing", -1, -1);
}

std::uint32_t state;
double random_number()
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

template <class Real> std::vector<Real> random_points(std::size_t numbers)
{
    std::vector<Real> pos(numbers);
    state = 7;
    for (Real &x : pos) x = static_cast<Real>(random_number());
    return pos;
}

using id_pairs = std::vector<std::array<std::int32_t, 2>>;

void put(id_pairs &pairs, std::int32_t i, std::int32_t j)
{
    pairs.push_back({std::min(i, j), std::max(i, j)});
}

id_pairs in_order(id_pairs pairs)
{
    std::sort(pairs.begin(), pairs.end());
    return pairs;
}

/* All pairs within the radius, by brute force, in the arithmetic of Real. */
template <class Real> id_pairs near_pairs(const std::vector<Real> &pos, Real radius)
{
    id_pairs pairs;
    std::int32_t const n = static_cast<std::int32_t>(pos.size() / 3);
    for (std::int32_t i = 0; i < n; i++) {
        for (std::int32_t j = i + 1; j < n; j++) {
            Real const *a = &pos[static_cast<std::size_t>(3 * i)];
            Real const *b = &pos[static_cast<std::size_t>(3 * j)];
            Real const x = b[0] - a[0], y = b[1] - a[1], z = b[2] - a[2];
            if (x * x + y * y + z * z <= radius * radius) put(pairs, i, j);
        }
    }
    return pairs;
}

template <class Grid> typename Grid::desc_type unit_box(typename Grid::real_type cell)
{
    typename Grid::desc_type desc{};
    desc.max[0] = desc.max[1] = desc.max[2] = 1;
    desc.cell = cell;
    return desc;
}

/* ------------------------------------------------------------------------------------------------
   owners
   ---------------------------------------------------------------------------------------------- */

template <class Owner> void owns()
{
    static_assert(!std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>);
    static_assert(std::is_nothrow_move_constructible_v<Owner>);
    static_assert(std::is_nothrow_move_assignable_v<Owner>);
}

template <class Grid> void test_moves()
{
    using real = typename Grid::real_type;
    std::vector<real> const pos = random_points<real>(300);
    auto const desc = unit_box<Grid>(real(0.2));
    Grid first(desc, pos);
    std::int64_t const pairs = first.count_pairs(real(0.2));
    EXPECT(pairs > 0);
    Grid second = std::move(first);
    EXPECT(second.count_pairs(real(0.2)) == pairs && first.size() == 0);
    EXPECT(thrown_by([&] { first.count_pairs(real(0.2)); }).code() == UGRID_NOT_BUILT);
    first.build(desc, pos);         /* an empty one can be used again */
    EXPECT(first.count_pairs(real(0.2)) == pairs);
    first = std::move(second);      /* its memory is freed: the leak checker looks */
    Grid &same = first;
    first = std::move(same);
    EXPECT(first.count_pairs(real(0.2)) == pairs);
    std::vector<Grid> many;
    for (int k = 0; k < 5; k++) many.emplace_back(desc, pos);
    for (const Grid &grid : many) EXPECT(grid.count_pairs(real(0.2)) == pairs);
}

/* Lists that were moved are empty, and can be filled again. */
void test_rows()
{
    std::vector<float> const pos = random_points<float>(300);
    nearfield::grid const grid(unit_box<nearfield::grid>(0.3f), pos);
    nearfield::rows first, second;
    grid.neighbors(0.3f, first);
    std::size_t const ids = first.ids.size();
    second = std::move(first);
    EXPECT(ids > 0 && second.ids.size() == ids && second.size() == 100);
    EXPECT(first.size() == 0 && first.ids.size() == 0 && first.ids.capacity() == 0);
    grid.neighbors(0.3f, first);
    EXPECT(first.ids.size() == ids && first.size() == 100);
    nearfield::rows third(std::move(first));
    EXPECT(first.ids.capacity() == 0 && third.ids.size() == ids);
    grid.neighbors(0.3f, first);
    EXPECT(std::equal(first.ids.begin(), first.ids.end(), second.ids.begin()));
    nearfield::rows &same = third;
    third = std::move(same);
    EXPECT(third.ids.size() == ids);
}

/* ------------------------------------------------------------------------------------------------
   grid
   ---------------------------------------------------------------------------------------------- */

template <class Real> struct vec3 { Real x, y, z; };
template <class Real> struct body { double mass; vec3<Real> at; Real speed[3]; };

/* Every way to hand positions in. */
template <class Grid> void test_records()
{
    using real = typename Grid::real_type;
    std::vector<real> const pos = random_points<real>(60);
    auto const desc = unit_box<Grid>(real(0.3));
    real const radius = real(0.3);
    std::int64_t const pairs = static_cast<std::int64_t>(near_pairs(pos, radius).size());
    std::vector<std::array<real, 3>> arrays(20);
    std::vector<vec3<real>> structs(20);
    std::vector<body<real>> bodies(20);
    real plain[20][3], flat[60];
    for (std::size_t k = 0; k < 60; k++) {
        arrays[k / 3][k % 3] = plain[k / 3][k % 3] = flat[k] = bodies[k / 3].speed[k % 3] = pos[k];
    }
    for (std::size_t i = 0; i < 20; i++)
        structs[i] = bodies[i].at = {pos[3 * i], pos[3 * i + 1], pos[3 * i + 2]};

    EXPECT(pairs > 5);
    EXPECT(Grid(desc, pos).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, arrays).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, structs).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, plain).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, flat).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, {bodies, &body<real>::at}).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, {bodies, &body<real>::speed}).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, nearfield::view<const real>(pos)).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, {pos.data(), 3 * sizeof(real), 20}).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, {&bodies[0].at.x, sizeof bodies[0], 20}).count_pairs(radius) == pairs);
#ifdef __cpp_lib_span
    EXPECT(Grid(desc, std::span<const real>(pos)).count_pairs(radius) == pairs);
    EXPECT(Grid(desc, std::span<vec3<real>>(structs)).count_pairs(radius) == pairs);
#endif
    using other = std::conditional_t<std::is_same_v<real, float>, double, float>;
    static_assert(!std::is_constructible_v<typename Grid::records, std::vector<other> &>);
    static_assert(!std::is_constructible_v<typename Grid::records, std::vector<vec3<other>> &>);
    static_assert(!std::is_constructible_v<typename Grid::records, std::vector<body<real>> &>);
    EXPECT(Grid(desc, std::vector<real>()).size() == 0);
}

template <class Grid> void test_grid()
{
    using real = typename Grid::real_type;
    std::vector<real> const pos = random_points<real>(3 * 1500);
    real const radius = real(0.11);
    id_pairs const right = near_pairs(pos, radius);
    Grid grid(unit_box<Grid>(radius), pos);
    id_pairs found;

    for (auto [i, j] : grid.pairs(radius)) put(found, i, j);
    EXPECT(in_order(found) == right);

    found.clear();
    bool const stopped =
        grid.each_pair(radius, [&](std::int32_t i, std::int32_t j) { put(found, i, j); });
    EXPECT(!stopped && in_order(found) == right);

    id_pairs of_walks, around;
    for (std::int32_t i = 0; i < grid.size(); i++)
        for (auto hit : grid.within(&pos[static_cast<std::size_t>(3 * i)], radius))
            if (hit.id > i) put(of_walks, i, hit.id);
    EXPECT(in_order(of_walks) == right);
    for (std::int32_t k = 0; k < grid.size(); k++)
        for (auto hit : grid.around(k, radius))
            if (grid->order[k] < hit.id) put(around, grid->order[k], hit.id);
    EXPECT(in_order(around) == right);

    nearfield::rows lists, again;
    id_pairs of_rows, of_lists, of_points;
    grid.neighbors(radius, lists);
    EXPECT(lists.size() == 1500 && lists.ids.size() == 2 * right.size());
    for (std::int32_t i = 0; i < grid.size(); i++)
        for (std::int32_t j : lists[static_cast<std::size_t>(i)]) if (i < j) put(of_lists, i, j);
    EXPECT(in_order(of_lists) == right);
    grid.neighbors_at(pos, radius, again);
    EXPECT(again.ids.size() == lists.ids.size() + 1500);
    const std::int32_t *kept = lists.ids.data();
    grid.neighbors(radius / 2, lists);
    EXPECT(lists.ids.data() == kept && lists.ids.size() == 2 * near_pairs(pos, radius / 2).size());
    grid.each_row(radius, [&](std::int32_t i, nearfield::view<const std::int32_t> ids) {
        for (std::int32_t j : ids) if (i < j) put(of_rows, i, j);
    });
    EXPECT(in_order(of_rows) == right);

    int calls = 0;
    EXPECT(grid.each_pair(radius, [&](std::int32_t, std::int32_t) { return ++calls == 3; }));
    EXPECT(calls == 3);
    real const one[3] = {real(0.5), real(0.5), real(0.5)};
    std::array<real, 3> const same = {one[0], one[1], one[2]};
    std::size_t hits = 0, hits_of_array = 0;
    for (auto hit : grid.within(one, radius)) hits += hit.distance2 <= radius * radius;
    for (auto hit : grid.within(same, radius)) hits_of_array += hit.id >= 0;
    EXPECT(hits > 0 && hits == hits_of_array);

    /* the filter of the grid, and flags */
    std::vector<std::uint32_t> masks(1500, 1);
    std::fill(masks.begin() + 700, masks.end(), 2u);
    grid->filter.masks = masks.data();
    std::size_t kept_pairs = 0, twice = 0;
    for (auto [i, j] : grid.pairs(radius, 0)) {
        EXPECT((i < 700) == (j < 700));
        twice++;
    }
    for (auto p : right) kept_pairs += (p[0] < 700) == (p[1] < 700);
    EXPECT(twice == 2 * kept_pairs);
}

/* ------------------------------------------------------------------------------------------------
   errors
   ---------------------------------------------------------------------------------------------- */

template <class Grid> void test_errors()
{
    using real = typename Grid::real_type;
    std::vector<real> pos = random_points<real>(30);
    auto desc = unit_box<Grid>(real(0.3));
    Grid grid;
    typename Grid::result_type result;

    pos[13] = static_cast<real>(NAN);
    nearfield::error const refused = thrown_by([&] { grid.build(desc, pos); });
    EXPECT(refused.code() == UGRID_NOT_FINITE && refused.bad_id() == 4);
    EXPECT(std::string(refused.what()).find("position") != std::string::npos);
    EXPECT(thrown_by([&] { Grid(desc, pos); }).code() == UGRID_NOT_FINITE);
    grid.build(desc, pos, &result);
    EXPECT(result == decltype(result)(UGRID_NOT_FINITE) && grid->bad_id == 4);
    pos.pop_back();                     /* 29 numbers are no points */
    EXPECT(thrown_by([&] { grid.build(desc, pos); }).code() == UGRID_BAD_ARGUMENT);
    pos.resize(30);
    pos[13] = 0;
    grid.build(desc, pos, &result);
    EXPECT(result == decltype(result)(UGRID_OK));
    real const p[3] = {};
    /* a point of two numbers in 3D; a pointer does not tell */
    std::vector<real> const two = {0, 0};
    std::array<real, 2> const pair = {0, 0};
    real const plain[2] = {0, 0};
    EXPECT(thrown_by([&] { grid.within(two, 1); }).code() == UGRID_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { grid.within(pair, 1); }).code() == UGRID_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { grid.within(plain, 1); }).code() == UGRID_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { grid.within(&pos[0], 1); }).code() == -1);
    static_assert(!std::is_constructible_v<typename Grid::point, real>);
    EXPECT(thrown_by([&] { grid.within(p, -1); }).code() == UGRID_BAD_RADIUS);
    EXPECT(thrown_by([&] { grid.pairs(-1); }).code() == UGRID_BAD_RADIUS);
    EXPECT(thrown_by([&] { grid.around(10, 1); }).code() == UGRID_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { grid.within(nullptr, 1); }).code() == UGRID_BAD_ARGUMENT);
    int hits = 0;
    for (auto hit : grid.within(p, -1, &result)) hits += hit.id >= 0;
    for (auto [i, j] : grid.pairs(-1, 0, &result)) hits += i != j;
    EXPECT(hits == 0 && result == decltype(result)(UGRID_BAD_RADIUS));

    /* an exception of a lambda ends the search, and leaves the call */
    int calls = 0;
    bool caught = false;
    try {
        grid.each_pair(1, [&](std::int32_t, std::int32_t) {
            if (++calls == 5) throw std::string("enough");
        });
    } catch (const std::string &what) {
        caught = what == "enough";
    }
    EXPECT(caught && calls == 5);
    EXPECT(grid.count_pairs(1) > 5);
    EXPECT(!Grid().each_pair(1, [](std::int32_t, std::int32_t) {}, 0, &result));
    EXPECT(result == decltype(result)(UGRID_NOT_BUILT));
}

/* The first error of an object, and one after a bad particle: bad_id is -1, the reason was
   another. */
template <class Grid, class Tree, class List, class Bodies> void test_bad_ids()
{
    using real = typename Grid::real_type;
    std::vector<real> pos = random_points<real>(60), none, ten(10);
    std::vector<std::int32_t> const ids(7);
    typename Grid::desc_type cells = unit_box<Grid>(real(0.3)), no_cells{};
    typename Tree::desc_type points{}, no_points{};
    points.kind = decltype(points.kind)(LBVH_POINTS);
    no_points.dim = 5;
    typename List::desc_type desc{}, no_desc{};
    desc.radius = real(0.2);
    typename Bodies::desc_type law{}, no_law{};
    no_law.order = -1;
    no_desc.dim = 5;
    Grid grid;
    Tree tree, tree_of_refit;
    List list, list_of_remap, list_of_sum;
    Bodies bodies, bodies_of_size;
    auto none_bad = [&](auto call) {
        nearfield::error const error = thrown_by(call);
        return error.code() != -1 && error.bad_id() == -1;
    };
    no_cells.cell = -1;
    EXPECT(none_bad([&] { grid.build(no_cells, pos); }));
    EXPECT(none_bad([&] { tree.build(no_points, pos); }));
    EXPECT(none_bad([&] { tree_of_refit.refit(pos); }));
    EXPECT(none_bad([&] { list.build(no_desc, pos); }));
    EXPECT(none_bad([&] { list_of_remap.remap(ids, 7); }));
    EXPECT(none_bad([&] {
        list_of_sum.sum({}, [](std::int32_t, std::int32_t, void *, real *, real *) {}, ten);
    }));
    EXPECT(none_bad([&] { bodies.build(no_law, pos, {}); }));
    EXPECT(none_bad([&] { bodies_of_size.accelerations(law, pos, ten, pos); }));

    pos[2] = static_cast<real>(NAN);
    for (int turn = 0; turn < 2; turn++) { /* after the NaN: refused for its sake, and not */
        EXPECT(thrown_by([&] { grid.build(cells, pos); }).bad_id() == 0);
        EXPECT(none_bad([&] { grid.build(no_cells, pos); }));
        EXPECT(thrown_by([&] { tree.build(points, pos); }).bad_id() == 0);
        EXPECT(none_bad([&] { tree.build(no_points, pos); }));
        EXPECT(thrown_by([&] { list.build(desc, pos); }).bad_id() == 0);
        EXPECT(none_bad([&] { list.build(no_desc, pos); }));
        EXPECT(thrown_by([&] { bodies.build(law, pos, {}); }).bad_id() == 1);
        EXPECT(none_bad([&] { bodies.build(no_law, pos, {}); }));
    }
    pos[2] = 0;
    desc.skin = real(0.1);
    tree.build(points, pos);
    list.build(desc, pos);
    pos[2] = static_cast<real>(NAN);
    EXPECT(thrown_by([&] { tree.refit(pos); }).bad_id() == 0);
    EXPECT(thrown_by([&] { list.build(desc, pos); }).bad_id() == 0);
    pos.resize(57);
    EXPECT(none_bad([&] { tree.refit(pos); }));
    EXPECT(none_bad([&] { list.moved(pos); }));
    EXPECT(none_bad([&] { list.remap(ids, 7); }));
}

/* ------------------------------------------------------------------------------------------------
   tree
   ---------------------------------------------------------------------------------------------- */

template <class Tree> constexpr auto may_list_pairs(int)
    -> decltype(std::declval<Tree>().pairs(), bool()) { return true; }
template <class Tree> constexpr bool may_list_pairs(...) { return false; }

template <class Tree> void test_tree()
{
    using real = typename Tree::real_type;
    int const n = 400;
    std::vector<real> const pos = random_points<real>(6 * n);
    std::vector<std::array<real, 6>> boxes(n);
    for (std::size_t i = 0; i < boxes.size(); i++)
        for (std::size_t a = 0; a < 3; a++) {
            boxes[i][a] = pos[6 * i + a];
            boxes[i][a + 3] = pos[6 * i + a] + pos[6 * i + a + 3] / 6;
        }
    auto overlap = [&](std::size_t i, std::size_t j) {
        for (std::size_t a = 0; a < 3; a++)
            if (boxes[i][a] > boxes[j][a + 3] || boxes[j][a] > boxes[i][a + 3]) return false;
        return true;
    };
    id_pairs right, walked, called, found;
    for (std::int32_t i = 0; i < n; i++)
        for (std::int32_t j = i + 1; j < n; j++)
            if (overlap(static_cast<std::size_t>(i), static_cast<std::size_t>(j)))
                put(right, i, j);
    Tree tree;
    tree.build({}, boxes);
    for (auto [i, j] : tree.pairs()) put(walked, i, j);
    tree.each_pair([&](std::int32_t i, std::int32_t j) { put(called, i, j); });
    for (std::int32_t i = 0; i < n; i++)
        for (auto hit : tree.overlaps(boxes[static_cast<std::size_t>(i)]))
            if (hit.id > i) put(found, i, hit.id);
    EXPECT(right.size() > 20 && in_order(walked) == right && in_order(called) == right);
    EXPECT(in_order(found) == right);
    EXPECT(tree.count_pairs() == static_cast<std::int64_t>(right.size()));
    Tree const empty;
    for (auto [i, j] : empty.pairs()) EXPECT(i == j);
    static_assert(may_list_pairs<Tree &>(0) && !may_list_pairs<Tree>(0), "gone before a turn");

    nearfield::rows lists;
    typename Tree::queries_type queries{};
    tree.overlaps(queries, lists);
    EXPECT(lists.ids.size() == 2 * right.size());

    /* the nearest of a point: by the distance to boxes, by one of ours, and by the walk */
    std::array<real, 3> const p = {real(0.3), real(0.6), real(0.2)};
    std::array<std::int32_t, 4> ids{}, own{};
    std::array<real, 4> distances2{}, own2{};
    auto away2 = [&](std::int32_t id) {
        real sum = 0;
        for (std::size_t a = 0; a < 3; a++) {
            auto const &box = boxes[static_cast<std::size_t>(id)];
            real const d = std::max(std::max(box[a] - p[a], p[a] - box[a + 3]), real(0));
            sum += d * d;
        }
        return sum;
    };
    EXPECT(tree.nearest(p, 10, ids, distances2) == 4);
    EXPECT(tree.nearest_by(p, 10, away2, own, own2) == 4 && own == ids);
    real least = 10;
    for (std::int32_t i = 0; i < n; i++) least = std::min(least, away2(i));
    EXPECT(std::fabs(distances2[0] - least) <= real(1e-6));
    auto walk = tree.nearby(p, 10);
    std::int32_t nearest = -1;
    for (auto hit : walk) {
        if (hit.distance2 > walk.walk().c.reach2) continue;
        if (nearest < 0 || hit.distance2 < walk.walk().c.reach2) nearest = hit.id;
        walk.walk().c.reach2 = hit.distance2;
    }
    EXPECT(away2(nearest) <= least + real(1e-6));
    bool caught = false;
    try {
        tree.nearest_by(p, 10, [](std::int32_t) -> real { throw 5; }, own, own2);
    } catch (int) {
        caught = true;
    }
    EXPECT(caught);
    EXPECT(thrown_by([&] {
        tree.nearest(p, 10, ids, nearfield::view<real>(distances2.data(), 2));
    }).code() == LBVH_BAD_ARGUMENT);

    std::size_t met = 0;
    real const from[3] = {-1, real(0.5), real(0.5)}, along[3] = {1, 0, 0};
    for (auto hit : tree.ray(from, along, 10)) met += hit.t >= 0;
    std::size_t crossed = 0;
    for (auto const &box : boxes)
        crossed += box[1] <= from[1] && from[1] <= box[4] && box[2] <= from[2] && from[2] <= box[5];
    EXPECT(met == crossed && met > 0);

    tree.refit(boxes);
    EXPECT(tree.count_pairs() == static_cast<std::int64_t>(right.size()));
    boxes.pop_back();
    EXPECT(thrown_by([&] { tree.refit(boxes); }).code() == LBVH_BAD_ARGUMENT);
    boxes[7][0] = 9;
    nearfield::error const inverted = thrown_by([&] { Tree({}, boxes); });
    EXPECT(inverted.code() == LBVH_INVERTED && inverted.bad_id() == 7);

    /* boxes and points of too few numbers; an empty tree looks at none */
    std::vector<real> const few = {0, 0, 0};
    std::array<real, 2> const two = {0, 0};
    typename Tree::result_type result;
    EXPECT(thrown_by([&] { tree.overlaps(few); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { tree.overlaps_sphere(two, 1); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { tree.nearby(two, 1); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { tree.ray(few, two, 1); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { tree.nearest(two, 1, ids, distances2); }).code() == LBVH_BAD_ARGUMENT);
    std::size_t refused = 0;
    for (auto hit : tree.overlaps(nullptr, &result)) refused += hit.id >= 0;
    for (auto hit : tree.nearby(nullptr, 10, &result)) refused += hit.id >= 0;
    for (auto hit : tree.ray(nullptr, two, 10, &result)) refused += hit.id >= 0;
    for (auto hit : tree.overlaps_sphere(two, 10, &result)) refused += hit.id >= 0;
    EXPECT(refused == 0 && result == decltype(result)(LBVH_BAD_ARGUMENT));
    for (auto hit : empty.overlaps(few)) refused += hit.id >= 0;
    EXPECT(refused == 0);

    std::vector<vec3<real>> const corners = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    std::vector<std::int32_t> const indices = {0, 1, 2, 0, 1, 3};
    Tree mesh;
    mesh.build({}, corners, indices);
    EXPECT(mesh.size() == 2 && mesh.count_pairs() == 1);
    mesh.refit(corners);
    EXPECT(mesh.count_pairs() == 1);
}

/* ------------------------------------------------------------------------------------------------
   list
   ---------------------------------------------------------------------------------------------- */

template <class List, class Grid, class Tree> void test_list()
{
    using real = typename List::real_type;
    std::vector<real> pos = random_points<real>(3 * 300);
    real const radius = real(0.12);
    id_pairs const right = near_pairs(pos, radius);
    Grid grid(unit_box<Grid>(radius), pos);
    typename Tree::desc_type points{};
    points.kind = decltype(points.kind)(LBVH_POINTS);
    Tree tree(points, pos);
    typename List::desc_type desc{};
    desc.radius = radius;
    desc.half = 1;
    desc.history = sizeof(int);
    desc.events = 1;
    List list, of_tree, brute;
    for (int step = 0; step < 3; step++) {
        list.build(desc, grid, pos);
        list.each_contact([](auto c) { c.template history<int>() += 1; });
    }
    of_tree.build(desc, tree, pos);
    brute.build(desc, pos);
    List moved = std::move(list);
    id_pairs found, of_trees, by_rows;
    moved.each_contact([&](auto c) {
        put(found, c.i, c.id);
        EXPECT(c.template history<int>() == 3);
    });
    of_tree.each_contact([&](auto c) { put(of_trees, c.i, c.id); });
    for (std::int32_t i = 0; i < moved.size(); i++)
        for (auto c : moved.of(i)) put(by_rows, i, c.id);
    EXPECT(!right.empty() && in_order(found) == right && in_order(of_trees) == right);
    EXPECT(in_order(by_rows) == right && brute.total() == moved.total());
    for (std::int32_t i : {-1, moved.size(), moved.size() + 9})
        for (auto c : moved.of(i)) EXPECT(c.id == i);
    EXPECT(moved.begun().empty() && moved.persisted().size() == right.size());
    EXPECT(of_tree.begun().size() == right.size() && of_tree.ended().empty());

    /* sums: the number of partners of each */
    std::vector<real> counts(300), wanted(300);
    typename List::sums_type how{};
    how.values = 1;
    moved.sum(how, [](std::int32_t, std::int32_t, void *, real *own, real *other) {
        own[0] = other[0] = 1;
    }, counts);
    for (auto p : right) for (std::int32_t i : p) wanted[static_cast<std::size_t>(i)] += 1;
    EXPECT(counts == wanted);
    counts.pop_back();
    auto nothing = [](std::int32_t, std::int32_t, void *, real *, real *) { return 0; };
    EXPECT(thrown_by([&] { moved.sum(how, nothing, counts); }).code() == NLIST_BAD_ARGUMENT);
    bool caught = false;
    counts.resize(300);
    try {
        moved.sum(how, [](std::int32_t, std::int32_t, void *, real *, real *) { throw 5; }, counts);
    } catch (int) {
        caught = true;
    }
    EXPECT(caught);

    /* f may stop; history of another width */
    int turns = 0;
    EXPECT(moved.each_contact([&](auto) { return ++turns == 4; }) && turns == 4);
    EXPECT(!moved.each_contact([&](auto) { turns++; }));
    struct two_ints { int a, b; };
    EXPECT(thrown_by([&] {
        moved.each_contact([](auto c) { c.template history<two_ints>().b = 1; });
    }).code() == NLIST_BAD_HISTORY);

    /* a list with a skin: before the first build, and as C tells; whether the two touch */
    desc.skin = real(0.02);
    List skin;
    EXPECT(skin.moved(pos) && skin.moved(std::vector<real>()));
    skin.build(desc, grid, pos);
    EXPECT(!skin.moved(pos) && skin.total() > static_cast<std::int64_t>(right.size()));
    for (int step = 0; step < 2; step++)
        for (std::int32_t i = 0; i < skin.size(); i++)
            for (auto c : skin.of(i)) {
                std::array<std::int32_t, 2> const p = {std::min(i, c.id), std::max(i, c.id)};
                bool const touches = std::binary_search(right.begin(), right.end(), p);
                EXPECT(c.touch(touches && step == 0) == (touches && step == 0));
                EXPECT(c.template history<int>() == 0);
                if (step == 0 && touches) c.template history<int>() = 5;
            }

    /* and a renumbered one */
    moved.build(desc, grid, pos);
    EXPECT(!moved.moved(pos));
    pos[5] += real(0.015);
    EXPECT(moved.moved(pos));
    std::vector<std::int32_t> turned(300);
    for (std::int32_t i = 0; i < 300; i++) turned[static_cast<std::size_t>(i)] = 299 - i;
    std::int64_t const entries = moved.total();
    moved.remap(turned, 300);
    EXPECT(moved.total() == entries);
    turned[3] = 7;
    EXPECT(thrown_by([&] { moved.remap(turned, 300); }).code() == NLIST_BAD_INDEX);
}

/* ------------------------------------------------------------------------------------------------
   bodies
   ---------------------------------------------------------------------------------------------- */

template <class Bodies> void test_bodies(typename Bodies::desc_type by_function)
{
    using real = typename Bodies::real_type;
    std::vector<real> const pos = random_points<real>(2 * 200);
    std::vector<real> const mass(200, real(0.5));
    std::vector<real> acc(400), direct(400), own(400), potential(200);
    typename Bodies::desc_type desc{};
    Bodies bodies;
    bodies.accelerations(desc, pos, mass, acc);
    for (std::size_t i = 0; i < 200; i++)
        for (std::size_t j = 0; j < 200; j++) {
            double const x = double(pos[2 * j]) - double(pos[2 * i]);
            double const y = double(pos[2 * j + 1]) - double(pos[2 * i + 1]);
            double const d2 = x * x + y * y;
            if (i == j) continue;
            direct[2 * i] += static_cast<real>(0.5 * x / (d2 * std::sqrt(d2)));
            direct[2 * i + 1] += static_cast<real>(0.5 * y / (d2 * std::sqrt(d2)));
        }
    double largest = 0, error = 0, of_own = 0;
    nearfield::law law([](double d) { return 1 / (d * d); }, [](double d) { return -1 / d; });
    by_function.function = law;     /* its address: as desc.function.user */
    Bodies by_law;
    by_law.fields(by_function, pos, mass, own, potential);
    for (std::size_t k = 0; k < 400; k++) {
        largest = std::max(largest, std::fabs(double(direct[k])));
        error = std::max(error, std::fabs(double(acc[k]) - double(direct[k])));
        of_own = std::max(of_own, std::fabs(double(own[k]) - double(direct[k])));
    }
    EXPECT(error < 1e-3 * largest && of_own < 1e-3 * largest);
    EXPECT(*std::max_element(potential.begin(), potential.end()) < 0);
    acc.pop_back();
    EXPECT(thrown_by([&] { bodies.accelerations(desc, pos, mass, acc); }).code() ==
           NBODY_BAD_ARGUMENT);
    acc.resize(400);
    EXPECT(thrown_by([&] {
        bodies.accelerations(desc, pos, nearfield::view<const real>(mass.data(), 199), acc);
    }).code() == NBODY_BAD_ARGUMENT);
    bodies.accelerations(desc, pos, {}, acc);   /* no masses: all 1 */
    Bodies moved = std::move(bodies);
    EXPECT(moved.size() == 200 && bodies.size() == 0);
}

/* ------------------------------------------------------------------------------------------------
   world, tasks
   ---------------------------------------------------------------------------------------------- */

template <class World> void test_world()
{
    using real = typename World::real_type;
    typename World::desc_type desc{};
    desc.dim = 2;
    desc.pair_bytes = sizeof(int);
    World world(desc);
    std::array<real, 4> const left = {0, 0, 1, 1}, right = {real(0.5), 0, 2, 1}, far = {5, 5, 6, 6};
    auto const a = world.insert(left, 11);
    auto const b = world.insert(right, 22);
    world.insert(far, 33);
    world.update();
    EXPECT(world.begun().size() == 1 && world.ended().empty());
    int pairs = 0;
    for (auto p : world.pairs()) {
        pairs++;
        EXPECT(p.user_a + p.user_b == 33 && p.template data<int>() == 0);
        p.template data<int>() = 4;
    }
    World moved = std::move(world);
    for (auto p : moved.pairs()) EXPECT(p.template data<int>() == 4);
    int hits = 0;
    for (auto hit : moved.overlaps(left)) hits += hit.user != 33;
    std::array<real, 3> const short_box = {0, 0, 1};
    EXPECT(thrown_by([&] { moved.overlaps(short_box); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { moved.move(a, short_box); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(thrown_by([&] { moved.insert(short_box, 4); }).code() == LBVH_BAD_ARGUMENT);
    EXPECT(pairs == 1 && hits == 2);
    moved.move(b, far);
    moved.update();
    EXPECT(moved.ended().size() == 1 && moved.begun().size() == 1);
    moved.remove(a);
    EXPECT(thrown_by([&] { moved.remove(a); }).code() == LBVH_BAD_ID);
}

template <class Grid> void test_tasks()
{
    using real = typename Grid::real_type;
    std::vector<real> const pos = random_points<real>(3 * 40000);
    int turns = 0;
    nearfield::tasks backwards([&](std::int32_t n, nearfield::task task) {
        for (std::int32_t k = n; k-- > 0; turns++) task(k);
    }, 8);
    auto desc = unit_box<Grid>(real(0.02));
    Grid serial(desc, pos);
    desc.parallel = backwards;
    Grid grid(desc, pos);
    EXPECT(grid.count_pairs(real(0.02)) == serial.count_pairs(real(0.02)) && turns > 8);
}

template <class Call> void run(const char *name, Call call)
{
    int const before = failures;
    call();
    std::printf("%s %s\n", failures == before ? "ok      " : "FAILED  ", name);
}

} /* namespace */

int main()
{
    namespace f32 = nearfield::f32;
    namespace f64 = nearfield::f64;
    owns<f32::grid>();
    owns<f32::tree>();
    owns<f32::list>();
    owns<f32::bodies>();
    owns<f32::world>();
    owns<f64::grid>();
    static_assert(std::is_same_v<nearfield::grid, f32::grid>);
    static_assert(!std::is_same_v<f64::grid, f32::grid>);
    static_assert(sizeof(f64::ugrid_desc) > sizeof(ugrid_desc));

    run("float: moves", test_moves<f32::grid>);
    run("double: moves", test_moves<f64::grid>);
    run("rows", test_rows);
    run("float: bad ids", test_bad_ids<f32::grid, f32::tree, f32::list, f32::bodies>);
    run("double: bad ids", test_bad_ids<f64::grid, f64::tree, f64::list, f64::bodies>);
    run("float: positions in", test_records<f32::grid>);
    run("double: positions in", test_records<f64::grid>);
    run("float: grid", test_grid<f32::grid>);
    run("double: grid", test_grid<f64::grid>);
    run("float: errors", test_errors<f32::grid>);
    run("double: errors", test_errors<f64::grid>);
    run("float: tree", test_tree<f32::tree>);
    run("double: tree", test_tree<f64::tree>);
    run("float: list", test_list<f32::list, f32::grid, f32::tree>);
    run("double: list", test_list<f64::list, f64::grid, f64::tree>);
    nbody_desc law = {};
    law.law = NBODY_FUNCTION;
    f64::nbody_desc law64 = {};
    law64.law = f64::NBODY_FUNCTION;
    run("float: bodies", [&] { test_bodies<f32::bodies>(law); });
    run("double: bodies", [&] { test_bodies<f64::bodies>(law64); });
    run("float: world", test_world<f32::world>);
    run("double: world", test_world<f64::world>);
    run("float: tasks", test_tasks<f32::grid>);
    run("double: tasks", test_tasks<f64::grid>);
    std::printf("%s\n", failures ? "FAILED" : "all right");
    return failures != 0;
}
