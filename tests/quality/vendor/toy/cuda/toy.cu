// cuda/toy.cu - v0.1.0 - the CUDA part of toy.h, included by it.
// SPDX-License-Identifier: MIT OR Unlicense
#if 10000 * TOY_VERSION_MAJOR + 100 * TOY_VERSION_MINOR + TOY_VERSION_PATCH != 100
#error "cuda/toy.cu 0.1.0 and toy.h are of different versions: copy both from one release"
#endif
#include <cuda_runtime.h>

namespace {

__global__ void toy_i_count(toy_array array, unsigned long long *pairs)
{
    int32_t i = int32_t(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= array.n) return;
    for (int32_t j = i + 1; j < array.n; j++)
        if (toy_equal(array.number[i], array.number[j])) atomicAdd(pairs, 1ull);
}

} // namespace

TOY_API toy_result toy_cuda_count(const toy_array *on_device, int64_t *pairs_on_device,
                                  struct CUstream_st *stream)
{
    if (!on_device || !pairs_on_device || on_device->n < 0) return TOY_BAD_ARGUMENT;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(on_device->n) / 128 + 1);
    config.blockDim = dim3(128);
    config.stream = stream;
    cudaError_t error = cudaLaunchKernelEx(&config, toy_i_count, *on_device,
                                           reinterpret_cast<unsigned long long *>(pairs_on_device));
    return error == cudaSuccess ? TOY_OK : TOY_BAD_ARGUMENT;
}
