/* gpu.h - what the CUDA examples share: errors, launches, device memory, times by events.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_GPU_H
#define EXAMPLES_GPU_H

#include <cuda_runtime.h>

#include "base.h"

constexpr int gpu_block = 128;

__device__ inline int32_t gpu_thread()
{
    return static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
}

inline void gpu_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) stop(1, "%s: %s", what, cudaGetErrorString(error));
}

/* One thread for each of `threads`. The compiler checks the types of the arguments. */
template <class... Parameters, class... Arguments>
void gpu_launch(cudaStream_t stream, int64_t threads, void (*kernel)(Parameters...),
                Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((threads + gpu_block - 1) / gpu_block));
    config.blockDim = dim3(gpu_block);
    config.stream = stream;
    gpu_must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "starting a kernel");
}

template <class T> T *gpu_array(size_t count)
{
    void *memory = nullptr;
    gpu_must(cudaMalloc(&memory, (count ? count : 1) * sizeof(T)), "GPU memory");
    return static_cast<T *>(memory);
}

inline void gpu_free(void *memory) { gpu_must(cudaFree(memory), "freeing GPU memory"); }

template <class T> void gpu_upload(T *to, const T *from, size_t count, cudaStream_t stream)
{
    gpu_must(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyHostToDevice, stream),
             "copying to the GPU");
}

template <class T> void gpu_download(T *to, const T *from, size_t count, cudaStream_t stream)
{
    gpu_must(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
             "copying from the GPU");
}

template <class T> void gpu_copy(T *to, const T *from, size_t count, cudaStream_t stream)
{
    gpu_must(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream),
             "copying");
}

inline void gpu_wait(cudaStream_t stream) { gpu_must(cudaStreamSynchronize(stream), "waiting"); }

inline cudaStream_t gpu_stream()
{
    cudaStream_t stream = nullptr;
    gpu_must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "no GPU to run on");
    return stream;
}

/* Points in time on the GPU. */
template <int count> struct gpu_events {
    cudaEvent_t event[count];
    void create()
    {
        for (cudaEvent_t &e : event) gpu_must(cudaEventCreate(&e), "an event");
    }
    void destroy()
    {
        for (cudaEvent_t e : event) gpu_must(cudaEventDestroy(e), "an event");
    }
    void record(int k, cudaStream_t stream)
    {
        gpu_must(cudaEventRecord(event[k], stream), "timing");
    }
    double seconds(int from, int to) const
    {
        float milliseconds = 0;
        gpu_must(cudaEventElapsedTime(&milliseconds, event[from], event[to]), "timing");
        return 1e-3 * static_cast<double>(milliseconds);
    }
};

/* What `work` puts into the stream, as a graph: started with a single call. */
template <class Work> cudaGraphExec_t gpu_capture(cudaStream_t stream, Work work)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    gpu_must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    work();
    gpu_must(cudaStreamEndCapture(stream, &graph), "capturing");
    gpu_must(cudaGraphInstantiate(&ready, graph, 0), "making a graph");
    gpu_must(cudaGraphDestroy(graph), "making a graph");
    return ready;
}

/* The largest |a - b|; a NaN counts as large. */
template <class T> double largest_difference(const T *a, const T *b, size_t count)
{
    double largest = 0;
    for (size_t k = 0; k < count; k++) {
        double const difference = fabs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
        if (!(difference <= largest)) largest = difference;
    }
    return largest;
}

#endif /* EXAMPLES_GPU_H */
