/* test_support.h - what selftest.cu and bugs.cu share: launching, device buffers, checks.
   SPDX-License-Identifier: MIT */
#ifndef EMU_TEST_SUPPORT_H
#define EMU_TEST_SUPPORT_H

#include "emu.h"

#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>

#include <vector>

/* Ends the program when a CUDA call fails: for calls that have no reason to. */
inline void must(cudaError_t error, const char *what = "a CUDA call")
{
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(error));
    exit(3);
}

template <class... P, class... A>
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, size_t shared, void (*kernel)(P...),
                   A... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

/* An array on the device, freed at the end of its scope. */
template <class T> class Device {
public:
    explicit Device(size_t n) : n_(n) { must(cudaMalloc(&p_, n * sizeof(T)), "cudaMalloc"); }
    Device(size_t n, int byte) : Device(n)
    {
        must(cudaMemset(p_, byte, n * sizeof(T)), "cudaMemset");
    }
    explicit Device(const std::vector<T> &host) : Device(host.size()) {
        must(cudaMemcpy(p_, host.data(), n_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    ~Device() { must(cudaFree(p_), "cudaFree"); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    T *get() const { return p_; }
    std::vector<T> host() const {
        std::vector<T> copy(n_);
        must(cudaMemcpy(copy.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return copy;
    }

private:
    T *p_ = nullptr;
    size_t n_;
};

template <class T> __device__ T *dynamic_shared()
{
#ifdef CUDA_EMU
    return (T *)emu_dynamic_shared();
#else
    extern __shared__ __align__(16) unsigned char bytes[];
    return (T *)bytes;
#endif
}

#endif
