/* coating_gpu.h - what coating.cu needs besides its bursts: memory, the comparison with serial
   searches, times.
   SPDX-License-Identifier: MIT OR Unlicense

   A part of coating.cu: included in its namespace. */

#ifndef COATING_GPU_H
#define COATING_GPU_H

/* ---- memory ---- */

void coat_gpu_new(coat_gpu *run, coating *host)
{
    size_t const rays = static_cast<size_t>(host->spray.rays),
                 n = static_cast<size_t>(host->bed->bodies.base.n);
    *run = coat_gpu();
    run->host = host;
    tablets_gpu_new(&run->bed, host->bed);
    run->rays = gpu_array<float>(6 * rays);
    run->boxes = gpu_array<float>(6 * n);
    run->hits = gpu_array<coat_hit>(rays);
    run->count = gpu_array<unsigned long long>(1 + n);
    gpu_must(cudaMemsetAsync(run->count, 0, (1 + n) * sizeof *run->count, run->bed.stream),
             "clearing");
    gpu_wait(run->bed.stream);
}

/* The scene is freed with the bed. */
void coat_gpu_free(coat_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    lbvh_cuda_free(&run->tree);
    gpu_free(run->rays);
    gpu_free(run->boxes);
    gpu_free(run->hits);
    gpu_free(run->count);
    free(run->host->count);
    tablets_gpu_free(&run->bed);
}

/* Copies bed and counts to the host. */
void coat_gpu_look(coat_gpu *run)
{
    size_t const counts = 1 + static_cast<size_t>(run->host->bed->bodies.base.n);
    static_assert(sizeof *run->host->count == sizeof *run->count, "a count");
    tablets_look(&run->bed);
    gpu_must(cudaMemcpyAsync(run->host->count, run->count, counts * sizeof *run->count,
                             cudaMemcpyDeviceToHost, run->bed.stream),
             "copying from the GPU");
    gpu_wait(run->bed.stream);
}

/* ---- check ---- */

/* Rays whose hits differ. A GPU may contract a product and a sum, so t may differ in the last
   digits, and of two particles at nearly the same t either may be hit. */
int64_t coat_gpu_differ(const coat_hit *a, const coat_hit *b, int32_t n)
{
    int64_t count = 0;
    for (int32_t r = 0; r < n; r++) {
        float const apart = fabsf(a[r].t - b[r].t);
        count += !(apart <= 1e-4f * b[r].t) || (a[r].id < 0) != (b[r].id < 0);
    }
    return count;
}

coat_hit *coat_gpu_download(coat_gpu *run)
{
    size_t const n = static_cast<size_t>(run->host->spray.rays);
    coat_hit *hits = static_cast<coat_hit *>(zeros(n, sizeof *hits));
    gpu_download(hits, run->hits, n, run->bed.stream);
    gpu_wait(run->bed.stream);
    return hits;
}

/* The rays of the next burst, on the host: the device's own rays, all particles one by one. */
coat_hit *coat_gpu_serial(coat_gpu *run)
{
    int32_t const n = run->host->spray.rays;
    float *rays = static_cast<float *>(zeros(6 * static_cast<size_t>(n), sizeof *rays));
    coat_hit *hits = static_cast<coat_hit *>(zeros(static_cast<size_t>(n), sizeof *hits));
    const dem_bodies *bodies = &run->host->bed->bodies;
    coat_gpu_make_rays(run, run->host->bursts);
    gpu_download(rays, run->rays, 6 * static_cast<size_t>(n), run->bed.stream);
    gpu_wait(run->bed.stream);
    for (int32_t r = 0; r < n; r++) {
        hits[r] = coat_no_hit();
        for (int32_t i = 0; i < bodies->base.n; i++)
            coat_test(bodies, i, rays + 6 * static_cast<size_t>(r), &hits[r]);
    }
    free(rays);
    return hits;
}

/* All searches; a ray in ten thousand may graze an edge that the other side just misses. */
bool coat_gpu_check(coat_gpu *run)
{
    int32_t const n = run->host->spray.rays;
    coat_hit *expected = coat_gpu_serial(run);
    bool agree = true;
    for (int k = COAT_BRUTE; k <= COAT_TREE; k++) {
        coat_gpu_prepare(run, k);
        coat_gpu_find(run, k);
        coat_hit *hits = coat_gpu_download(run);
        int64_t const differ = coat_gpu_differ(hits, expected, n);
        printf("check: %s: %ld of %ld rays differ from serial searches\n", coat_searches[k].name,
               static_cast<long>(differ), static_cast<long>(n));
        if (differ > n / 10000) agree = false;
        free(hits);
    }
    free(expected);
    return agree;
}

/* ---- times ---- */

/* Seconds of building and searching: medians of some rounds after one that takes memory. */
void coat_gpu_time(coat_gpu *run, int search, double seconds[2])
{
    enum { ROUNDS = 9 };
    gpu_events<3> events;
    double spent[2][ROUNDS];
    events.create();
    for (int round = -1; round < ROUNDS; round++) {
        events.record(0, run->bed.stream);
        coat_gpu_prepare(run, search);
        events.record(1, run->bed.stream);
        coat_gpu_find(run, search);
        events.record(2, run->bed.stream);
        gpu_wait(run->bed.stream);
        for (int k = 0; k < 2 && round >= 0; k++) spent[k][round] = events.seconds(k, k + 1);
    }
    for (int k = 0; k < 2; k++) seconds[k] = median(spent[k], ROUNDS);
    events.destroy();
}

/* The rays of the next burst on the bed as it lies, and how many hits differ from the tree's. */
void coat_gpu_print_times(coat_gpu *run)
{
    int32_t const n = run->host->spray.rays;
    coat_gpu_make_rays(run, run->host->bursts);
    coat_gpu_prepare(run, COAT_TREE);
    coat_gpu_find(run, COAT_TREE);
    coat_hit *first = coat_gpu_download(run);
    puts("search, build us, ns per ray, particles tested and cells per ray, rays that differ:");
    for (int k = COAT_LOOSE; k <= COAT_TREE; k++) {
        double seconds[2], tests = 0, cells = 0;
        coat_gpu_time(run, k, seconds);
        coat_hit *hits = coat_gpu_download(run);
        for (int32_t r = 0; r < n; r++) {
            tests += static_cast<double>(hits[r].tests) / n;
            cells += static_cast<double>(hits[r].cells) / n;
        }
        printf("time: %-6s %9.1f %9.3f %8.2f %7.2f %ld\n", coat_searches[k].name,
               1e6 * seconds[0], 1e9 * seconds[1] / n, tests, cells,
               static_cast<long>(coat_gpu_differ(hits, first, n)));
        free(hits);
    }
    free(first);
}

#endif /* COATING_GPU_H */
