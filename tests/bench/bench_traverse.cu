/* bench_traverse.cu - all pairs of boxes that overlap, through one tree, in the steps of "Thinking
   Parallel, Part II: Tree Traversal on the GPU" (source 003), and in ours; beside them its Part I:
   sort and sweep.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it
       build/cuda/bench_traverse --csv traverse.csv
       build/cuda/bench_traverse --small      does it work at all? (also on the emulator)
       groups: traverse

   Each step finds every pair once: an element takes partners at later places only. A second run of
   the same kernel counts the nodes that each thread looks at: of the lanes of a warp, how many are
   at work, on average? The source is T. Karras, NVIDIA developer blog; it describes the methods,
   the code is ours. */

#define LBVH_STATIC
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#include "tests/bench/bench_gpu.h"
#include "tests/common/workloads.h"

namespace {

void must(lbvh_result result)
{
    if (result == LBVH_OK) return;
    std::printf("%s\n", lbvh_result_text(result));
    std::exit(1);
}

/* What a kernel adds up. */
struct tally {
    unsigned long long pairs;
    unsigned long long looks;   /* nodes, of all threads */
    unsigned long long turns;   /* of the busiest lane of each warp, times 32 */
};

/* Of one thread. */
struct counts { int pairs, looks; };

__device__ void add_tally(const counts &c, int looking, tally *sum)
{
    add_to(&sum->pairs, static_cast<unsigned long long>(c.pairs));
    if (!looking) return;
    int most = c.looks;
    for (int distance = 16; distance > 0; distance /= 2) {
        int const other = __shfl_xor_sync(0xFFFFFFFFu, most, distance);
        most = other > most ? other : most;
    }
    add_to(&sum->looks, static_cast<unsigned long long>(c.looks));
    add_to(&sum->turns, static_cast<unsigned long long>(most));
}

/* ---- the steps: one thread for one element --------------------------------------------------- */

/* Could the node hold a partner of the leaf at `place`? */
__device__ bool wanted(const lbvh &tree, int32_t at, const lbvh_node &own, int32_t place)
{
    const lbvh_node &node = tree.node[at];
    int32_t const last =
        lbvh_is_leaf(&tree, at) ? at - tree.first_leaf : lbvh_last_place(&tree, &node);
    return last > place && lbvh_boxes_touch(&node, own.min, own.max);
}

__device__ void recurse(const lbvh &tree, int32_t at, const lbvh_node &own, int32_t place,
                        counts *c)
{
    c->looks++;
    if (!wanted(tree, at, own, place)) return;
    if (lbvh_is_leaf(&tree, at)) { c->pairs++; return; }
    recurse(tree, tree.node[at].link, own, place, c);
    recurse(tree, lbvh_right_child(&tree, &tree.node[at]), own, place, c);
}

__device__ counts by_recursion(const lbvh &tree, const lbvh_node &own, int32_t place)
{
    counts c = {0, 0};
    recurse(tree, lbvh_root(&tree), own, place, &c);
    return c;
}

__device__ counts by_stack(const lbvh &tree, const lbvh_node &own, int32_t place)
{
    counts c = {0, 0};
    int32_t stack[LBVH_STACK];
    int top = 0;
    stack[top++] = lbvh_root(&tree);
    while (top > 0) {
        int32_t const at = stack[--top];
        c.looks++;
        if (!wanted(tree, at, own, place)) continue;
        if (lbvh_is_leaf(&tree, at)) { c.pairs++; continue; }
        stack[top++] = lbvh_right_child(&tree, &tree.node[at]);
        stack[top++] = tree.node[at].link;
    }
    return c;
}

__device__ counts by_skips(const lbvh &tree, const lbvh_node &own, int32_t place, int32_t from)
{
    counts c = {0, 0};
    for (int32_t at = from; at >= 0;) {
        bool const meets = wanted(tree, at, own, place);
        c.looks++;
        c.pairs += meets && lbvh_is_leaf(&tree, at);
        at = meets && !lbvh_is_leaf(&tree, at) ? tree.node[at].link : tree.node[at].skip;
    }
    return c;
}

enum step { recursive, stacked, stacked_in_order, skipping, skipping_later, simultaneous, warps,
            sweeping, steps };
const char *const step_name[] = {"recursive, any order",     "stack, any order",
                                 "stack, leaf order",        "skip links, leaf order",
                                 "skip links from the leaf", "simultaneous, in rounds",
                                 "lbvh_cuda_count_pairs",  "sort and sweep"};

/* places: the place of each thread's element; NULL: places in order. */
template <step how>
__global__ void each_kernel(__grid_constant__ const lbvh_device device, const int32_t *places,
                            int looking, tally *sum)
{
    const lbvh &tree = device.tree;
    int64_t const k = thread_index();
    counts c = {0, 0};
    if (k < tree.n) {
        int32_t const place = places ? places[k] : static_cast<int32_t>(k);
        lbvh_node const own = tree.node[tree.first_leaf + place];
        if (how == recursive) c = by_recursion(tree, own, place);
        if (how == stacked || how == stacked_in_order) c = by_stack(tree, own, place);
        if (how == skipping) c = by_skips(tree, own, place, lbvh_root(&tree));
        if (how == skipping_later) c = by_skips(tree, own, place, own.skip);
    }
    add_tally(c, looking, sum);
}

/* The place of each element. */
__global__ void places_kernel(__grid_constant__ const lbvh_device device, int32_t *places)
{
    const lbvh &tree = device.tree;
    int64_t const k = thread_index();
    if (k < tree.n) places[tree.node[tree.first_leaf + k].link] = static_cast<int32_t>(k);
}

/* ---- simultaneous: the tree against itself, pairs of nodes in rounds ------------------------- */

struct node_pair { int32_t a, b; };
struct queue {
    node_pair *pairs[2];
    int32_t *count;     /* [2]; more than `capacity`: some were lost */
    int32_t capacity;
};

__device__ void push(const queue &q, int to, int32_t a, int32_t b)
{
    int32_t const k = atomicAdd(&q.count[to], 1);
    if (k < q.capacity) q.pairs[to][k] = {a, b};
}

/* Children of the node, or the node itself where it is a leaf. */
__device__ int divide(const lbvh &tree, int32_t at, int32_t into[2])
{
    into[0] = at;
    if (lbvh_is_leaf(&tree, at)) return 1;
    into[0] = tree.node[at].link;
    into[1] = lbvh_right_child(&tree, &tree.node[at]);
    return 2;
}

__device__ int expand(const lbvh &tree, const queue &q, int to, node_pair pair)
{
    int32_t left[2], right[2];
    int const lefts = divide(tree, pair.a, left), rights = divide(tree, pair.b, right);
    int found = 0;
    for (int i = 0; i < lefts; i++)
        for (int j = pair.a == pair.b ? i : 0; j < rights; j++) {
            int32_t const a = left[i], b = right[j];
            bool const leaves = lbvh_is_leaf(&tree, a) && lbvh_is_leaf(&tree, b);
            const lbvh_node &other = tree.node[b];
            if (a == b ? leaves : !lbvh_boxes_touch(&tree.node[a], other.min, other.max)) continue;
            if (leaves) found++;
            else push(q, to, a, b);
        }
    return found;
}

__global__ void round_kernel(__grid_constant__ const lbvh_device device, queue q, int from,
                             tally *sum)
{
    int32_t const count = q.count[from] < q.capacity ? q.count[from] : q.capacity;
    int64_t const stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    counts c = {0, 0};
    for (int64_t k = thread_index(); k < count; k += stride) {
        c.pairs += expand(device.tree, q, 1 - from, q.pairs[from][k]);
        c.looks++;
    }
    add_tally(c, 0, sum);
}

__global__ void first_round_kernel(queue q)
{
    q.pairs[0][0] = {0, 0};
    q.count[0] = 1;
    q.count[1] = 0;
}

/* ---- sort and sweep: no tree; boxes ordered by where they begin along x ---------------------- */

struct sweep {
    int32_t n;
    device_array<float> boxes, begin, sorted_begin;     /* boxes: [6 n] as given */
    device_array<float> sorted;                         /* [6 n] in the order of their begin */
    device_array<int32_t> id, sorted_id;
    device_array<char> temp;

    explicit sweep(const std::vector<float> &given)
        : n(static_cast<int32_t>(given.size() / 6)), boxes(given.size()), begin(given.size() / 6),
          sorted_begin(given.size() / 6), sorted(given.size()), id(given.size() / 6),
          sorted_id(given.size() / 6), temp(temp_bytes())
    {
        boxes.upload(given.data());
    }
    std::size_t temp_bytes()
    {
        std::size_t bytes = 0;
        must(cub::DeviceRadixSort::SortPairs(nullptr, bytes, begin.data, sorted_begin.data, id.data,
                                             sorted_id.data, n, 0, 32, stream));
        return bytes;
    }
    void sort();
    void find(int looking, tally *sum);
};

__global__ void begin_kernel(const float *boxes, int32_t n, float *begin, int32_t *id)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    begin[k] = boxes[6 * k];
    id[k] = static_cast<int32_t>(k);
}

__global__ void sorted_kernel(const float *boxes, int32_t n, const int32_t *id, float *sorted)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    for (int c = 0; c < 6; c++) sorted[6 * k + c] = boxes[6 * int64_t{id[k]} + c];
}

/* One thread for each box: those that begin after it, up to where it ends. */
__global__ void sweep_kernel(const float *sorted, int32_t n, int looking, tally *sum)
{
    int64_t const k = thread_index();
    counts c = {0, 0};
    if (k < n) {
        float own[6];
        for (int a = 0; a < 6; a++) own[a] = sorted[6 * k + a];
        for (int64_t j = k + 1; j < n && sorted[6 * j] <= own[3]; j++) {
            const float *const p = sorted + 6 * j;
            c.looks++;
            c.pairs += p[1] <= own[4] && own[1] <= p[4] && p[2] <= own[5] && own[2] <= p[5];
        }
    }
    add_tally(c, looking, sum);
}

void sweep::sort()
{
    std::size_t bytes = temp.count;
    launch(n, begin_kernel, boxes.data, n, begin.data, id.data);
    must(cub::DeviceRadixSort::SortPairs(temp.data, bytes, begin.data, sorted_begin.data, id.data,
                                         sorted_id.data, n, 0, 32, stream));
    launch(n, sorted_kernel, boxes.data, n, sorted_id.data, sorted.data);
}

void sweep::find(int looking, tally *sum)
{
    launch(n, sweep_kernel, sorted.data, n, looking, sum);
}

/* ---- all steps over one set ------------------------------------------------------------------ */

struct scene {
    int32_t n, blocks;
    lbvh_cuda gpu = {};
    device_array<int32_t> places, count;
    device_array<node_pair> first, second;
    device_array<tally> sum;
    device_array<int64_t> found;
    sweep along_x;
    int rounds = 0;

    explicit scene(const std::vector<float> &boxes)
        : n(static_cast<int32_t>(boxes.size() / 6)), places(boxes.size() / 6), count(2),
          first(boxes.size() * 6), second(boxes.size() * 6), sum(1), found(1), along_x(boxes)
    {
        device_array<float> data(boxes.size());
        cudaDeviceProp properties;
        lbvh_desc desc = {};
        int device;
        desc.kind = LBVH_BOXES;
        along_x.sort();
        data.upload(boxes.data());
        must(lbvh_cuda_build(&gpu, &desc, data.data, 0, n, stream));
        must(cudaStreamSynchronize(stream));
        launch(n, places_kernel, gpu.device, places.data);
        must(cudaGetDevice(&device));
        must(cudaGetDeviceProperties(&properties, device));
        blocks = bench.small ? 2 : 8 * properties.multiProcessorCount;
#ifdef __NVCC__ /* the emulator has the stack of the CPU */
        must(cudaDeviceSetLimit(cudaLimitStackSize, LBVH_STACK * 128));
#endif
    }
    ~scene() { lbvh_cuda_free(&gpu); }
    queue pairs_of_nodes()
    {
        return {{first.data, second.data}, count.data, static_cast<int32_t>(first.count)};
    }
    int round(int k)
    {
        int const from = k % 2;
        must(cudaMemsetAsync(count.data + 1 - from, 0, sizeof *count.data, stream));
        launch(static_cast<int64_t>(blocks) * block_size, round_kernel, gpu.device,
               pairs_of_nodes(), from, sum.data);
        return 1 - from;
    }
    /* How many rounds it takes; false: the queue was too short. */
    bool find_rounds()
    {
        bool fits = true;
        launch(1, first_round_kernel, pairs_of_nodes());
        for (rounds = 0; count.download()[static_cast<std::size_t>(rounds % 2)] > 0; rounds++) {
            int const to = round(rounds);
            fits = fits && count.download()[static_cast<std::size_t>(to)] <=
                               static_cast<int32_t>(first.count);
        }
        return fits;
    }
    void run_simultaneous()
    {
        launch(1, first_round_kernel, pairs_of_nodes());
        for (int k = 0; k < rounds; k++) round(k);
    }
    void run(step how, int looking)
    {
        must(cudaMemsetAsync(sum.data, 0, sizeof *sum.data, stream));
        const lbvh_device &device = gpu.device;
        const int32_t *const in_order = nullptr;
        if (how == recursive)
            launch(n, each_kernel<recursive>, device, places.data, looking, sum.data);
        if (how == stacked) launch(n, each_kernel<stacked>, device, places.data, looking, sum.data);
        if (how == stacked_in_order)
            launch(n, each_kernel<stacked_in_order>, device, in_order, looking, sum.data);
        if (how == skipping) launch(n, each_kernel<skipping>, device, in_order, looking, sum.data);
        if (how == skipping_later)
            launch(n, each_kernel<skipping_later>, device, in_order, looking, sum.data);
        if (how == simultaneous) run_simultaneous();
        if (how == sweeping) along_x.find(looking, sum.data);
        if (how == warps) must(lbvh_cuda_count_pairs(&gpu, found.data, stream));
    }
    int64_t pairs(step how)
    {
        if (how == warps) return found.download()[0];
        return static_cast<int64_t>(sum.download()[0].pairs);
    }
};

/* Boxes of edge 1.2 where there is one in each unit cube: about 14 overlap with each. two_sizes:
   one in 3600 is ten times as large, as in table 6.13 of source 004. */
std::vector<float> boxes_of(int32_t n, bool two_sizes)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n)), boxes(6 * static_cast<std::size_t>(n));
    float const edge = 0.6f / cbrtf(static_cast<float>(n));
    wl_uniform(n, 1, pos.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); i++)
        for (std::size_t a = 0; a < 3; a++) {
            float const half = two_sizes && i % 3600 == 0 ? 10 * edge : edge;
            boxes[6 * i + a] = pos[3 * i + a] - half;
            boxes[6 * i + 3 + a] = pos[3 * i + a] + half;
        }
    return boxes;
}

/* The oracle where it is affordable: all pairs, on the host. */
int64_t brute_force(const std::vector<float> &boxes)
{
    std::size_t const n = boxes.size() / 6;
    int64_t found = 0;
    for (std::size_t i = 0; i < n; i++)
        for (std::size_t j = i + 1; j < n; j++) {
            const float *p = &boxes[6 * i], *q = &boxes[6 * j];
            found += p[0] <= q[3] && q[0] <= p[3] && p[1] <= q[4] && q[1] <= p[4] &&
                     p[2] <= q[5] && q[2] <= p[5];
        }
    return found;
}

void lanes_row(scene *s, step how, const std::string &workload)
{
    s->run(how, 1);
    tally const t = s->sum.download()[0];
    double const part =
        t.turns ? static_cast<double>(t.looks) / static_cast<double>(t.turns) : 0;
    bench_value("traverse", workload.c_str(), (std::string(step_name[how]) + ": lanes").c_str(),
                s->n, 100 * part, "% of lanes at work");
    bench_value("traverse", workload.c_str(), (std::string(step_name[how]) + ": nodes").c_str(),
                s->n, static_cast<double>(t.looks) / s->n, "nodes an element");
    std::printf("%-20s  %-32s %28.1f nodes an element, %3.0f %% of the lanes at work\n",
                workload.c_str(), step_name[how], static_cast<double>(t.looks) / s->n, 100 * part);
}

void traverse_rows(int32_t n, bool two_sizes)
{
    std::vector<float> const boxes = boxes_of(n, two_sizes);
    std::string const workload = (two_sizes ? "two-sizes-" : "boxes-") + size_name(n);
    scene s(boxes);
    bench_check(s.find_rounds(), "the queue of simultaneous traversal was too short");
    double base = 0;
    int64_t expected = n <= 20000 ? brute_force(boxes) : -1;
    for (int k = 0; k < steps; k++) {
        step const how = static_cast<step>(k);
        bench_row_s row = {};
        row.group = "traverse";
        row.workload = workload.c_str();
        row.method = step_name[k];
        row.n = n;
        row.ms = gpu_ms([&] { s.run(how, 0); });
        if (k == 0) base = row.ms;
        row.base_ms = base;
        bench_row(&row);
        if (expected < 0) expected = s.pairs(how);
        bench_check(s.pairs(how) == expected && expected > 2 * static_cast<int64_t>(n),
                    step_name[k]);
    }
    bench_row_s sort = {};
    sort.group = "traverse";
    sort.workload = workload.c_str();
    sort.method = "sort and sweep: the sort";
    sort.n = n;
    sort.ms = gpu_ms([&] { s.along_x.sort(); });
    bench_row(&sort);
    for (int k = 0; k < simultaneous; k++) lanes_row(&s, static_cast<step>(k), workload);
    lanes_row(&s, sweeping, workload);
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "bench_traverse_cuda", "traverse");
    start_gpu();
    print_gpu("lbvh.h", lbvh_version());
    measure_copy();
    bench_title("traverse: all pairs of overlapping boxes, tree built (003)", "recursive");
    for (int32_t n : bench.n ? std::vector<int32_t>{bench.n}
                             : std::vector<int32_t>{12000, 100000, 1000000})
        for (bool two_sizes : {false, true}) traverse_rows(n, two_sizes);
    stop_gpu();
    return bench_end();
}
