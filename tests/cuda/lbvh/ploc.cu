/* ploc.cu - a part of test_lbvh.cu: LBVH_PLOC, whose clusters meet across warps and blocks: every
   small number of elements, every shape, trees that are too deep, elements left out, the elements
   in another order, a CUDA graph. (The other tests build with it as well: case_of.)
   SPDX-License-Identifier: MIT OR Unlicense */

static Case ploc_case(int dim, Form form, int bits, Shape shape, int n)
{
    Case c = {};
    c.dim = dim;
    c.form = form;
    c.bits = bits;
    c.builder = LBVH_PLOC;
    c.shape = shape;
    c.n = n;
    return c;
}

/* The tree of the GPU is the serial one; and it is still after a refit, which also looks at the
   prefixes. */
static bool build_ploc(Trees *g, const Input &in, const OnDevice &on_device)
{
    if (!build(g, in, on_device)) return false;
    CHECK_RESULT(lbvh_cuda_refit(&g->gpu, on_device.data.p, in.stride, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_download(&g->copy, &g->gpu, stream), LBVH_OK);
    check_arrays(g->serial, g->copy);
    return true;
}

/* Around a window of 16 and of 32, a warp and a block. */
static void test_ploc_few()
{
    int const most = share > 60 ? 70 : 140;
    for (int n = 0; n <= most; n++) {
        Case c = ploc_case(2 + n % 2, BOXES, n % 3 ? 63 : 30, UNIFORM, n);
        c.shape = n % 5 == 4 ? EQUAL : n % 5 == 2 ? CLUSTERED : n % 5 == 0 ? LINE : UNIFORM;
        c.masked = n % 4 == 3;
        c.keep_codes = n % 4 == 1;
        context = "ploc few: " + name_of(c);
        Input const in = input_of(c, n);
        OnDevice const on_device(in);
        Trees g;
        build_ploc(&g, in, on_device);
    }
}

/* Several rounds of blocks, in 2D and 3D. */
static void test_ploc_shapes()
{
    for (int k = 0; k < 2 * SHAPES; k++) {
        Case c = ploc_case(2 + k % 2, k % 3 ? BOXES : TRIANGLES, k % 4 < 2 ? 63 : 30,
            (Shape)(k / 2), std::min(size_max, share > 60 ? 500 : 2000) + k);
        c.masked = k % 5 == 0;
        c.keep_codes = k % 3 == 1;
        context = "ploc shapes: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const on_device(in);
        Trees g;
        build_ploc(&g, in, on_device);
    }
}

/* Boxes in boxes around one centre, each `growth` times as large as the one before. */
static Input nested(int n, double growth)
{
    Input in = {};
    in.desc.dim = 3;
    in.desc.bits = 63;
    in.desc.builder = LBVH_PLOC;
    in.desc.keep_codes = 1;
    in.n = n;
    in.width = 6;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < 6; a++)
            in.data.push_back((real)((a < 3 ? -1 : 1) * std::pow(growth, i)));
    return in;
}

/* Chains of nearly all boxes. One that is too deep stays the tree of MERGE, and keeps its codes. */
static void test_ploc_too_deep()
{
    int below = 0, above = 0;
    for (int n : {90, 266, 267, 268, 269, 270, 271, 272, 273, 274, 275, 400}) {
        Input const in = nested(n, 1.1);
        OnDevice const on_device(in);
        Trees g;
        lbvh merged = {};
        lbvh_desc d = host_desc(in);
        context = "ploc too deep: " + std::to_string(n);
        if (!build_ploc(&g, in, on_device)) continue;
        d.builder = LBVH_MERGE;
        CHECK_RESULT(lbvh_build(&merged, &d, in.data.data(), 0, n), LBVH_OK);
        bool const same = same_bits(g.copy.prefix, merged.prefix, (size_t)n + 1);
        (same ? above : below)++;
        lbvh_free(&merged);
    }
    CHECK(below > 0 && above > 0);
}

/* Elements that are left out lie on each other in the last cell, and their boxes are inverted. */
static void test_ploc_left_out()
{
    for (int dim = 2; dim <= 3; dim++)
        for (int every : {1, 2, 3, 10})
            for (int n : {2, 5, 33, 300}) {
                Case const c = ploc_case(dim, BOXES, 63, UNIFORM, n);
                Input in = input_of(c, n + every);
                for (int i = every / 2; i < n; i += every)
                    in.data[(size_t)i * in.width] = not_a_number;
                context = "ploc, every " + std::to_string(every) + " left out: " + name_of(c);
                OnDevice const on_device(in);
                Trees g;
                build_ploc(&g, in, on_device);
            }
}

/* The same elements in another order: the same tree, with the other ids. */
static void test_ploc_order()
{
    for (int dim = 2; dim <= 3; dim++) {
        Case const c = ploc_case(dim, BOXES, 63, SIZES, std::min(n_max, 700));
        Input const in = input_of(c, dim);
        Input other = in;
        wl_random r = wl_seed(9);
        std::vector<size_t> from((size_t)c.n);
        for (size_t i = 0; i < from.size(); i++) from[i] = i;
        for (size_t i = from.size(); i > 1; i--)
            std::swap(from[i - 1], from[wl_below(&r, (uint32_t)i)]);
        for (size_t i = 0; i < from.size(); i++)
            std::copy_n(in.data.begin() + (ptrdiff_t)(from[i] * in.width), in.width,
                other.data.begin() + (ptrdiff_t)(i * in.width));
        context = "ploc, another order: " + name_of(c);
        OnDevice const on_device(in), on_device_other(other);
        Trees a, b;
        if (!build(&a, in, on_device) || !build(&b, other, on_device_other)) continue;
        for (int32_t k = b.copy.first_leaf; k < 2 * b.copy.n - 1; k++)
            b.copy.node[k].link = (int32_t)from[(size_t)b.copy.node[k].link];
        check_arrays(a.copy, b.copy);
    }
}

/* A build in a graph takes no memory after a reserve, and is repeated with other elements. */
static void test_ploc_graph()
{
    for (int bits : {30, 63}) {
        Case const c = ploc_case(3, TRIANGLES, bits, SIZES, std::min(n_max, 900));
        Input const in = input_of(c, 1);
        OnDevice const on_device(in);
        Heap h = {};
        Trees g;
        lbvh_desc d = device_desc(in, on_device);
        lbvh_desc const host = host_desc(in);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t replay = nullptr;
        context = "ploc graph: " + name_of(c);
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(lbvh_cuda_reserve(&g.gpu, &d, c.n, 0, stream), LBVH_OK);
        long const calls = h.calls;
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, in.stride, c.n, stream),
            LBVH_OK);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&replay, graph, 0));
        for (int turn = 0; turn < 3; turn++) {
            Input const now = input_of(c, 10 + turn);
            on_device.data.set(now.data);
            MUST(cudaGraphLaunch(replay, stream));
            CHECK_RESULT(lbvh_build(&g.serial, &host, now.data.data(), now.stride, c.n), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
            check_arrays(g.serial, g.copy);
        }
        CHECK(calls > 0 && h.calls == calls);
        MUST(cudaGraphExecDestroy(replay));
        MUST(cudaGraphDestroy(graph));
    }
}
