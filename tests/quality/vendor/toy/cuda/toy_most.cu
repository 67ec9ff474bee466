// cuda/toy_most.cu - v0.1.0 - the CUDA part of more/toy_most.h, included by it.
// SPDX-License-Identifier: MIT OR Unlicense
#if 10000 * TOY_VERSION_MAJOR + 100 * TOY_VERSION_MINOR + TOY_VERSION_PATCH != 100
#error "cuda/toy_most.cu 0.1.0 and toy.h are of different versions: copy both from one release"
#endif

namespace {

__global__ void toy_i_most_kernel(toy_array array, toy_real *number)
{
    int32_t most = -1;
    for (int32_t i = 0; i < array.n; i++) {
        int32_t now = 0;
        for (int32_t j = i + 1; j < array.n; j++)
            now += toy_equal(array.number[i], array.number[j]);
        if (now > most) *number = array.number[i];
        most = now > most ? now : most;
    }
}

} // namespace

TOY_API toy_result toy_cuda_most(const toy_array *on_device, toy_real *on_device_too,
                                 struct CUstream_st *stream)
{
    if (!on_device || !on_device_too || on_device->n < 1) return TOY_BAD_ARGUMENT;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream;
    cudaError_t error = cudaLaunchKernelEx(&config, toy_i_most_kernel, *on_device, on_device_too);
    return error == cudaSuccess ? TOY_OK : TOY_BAD_ARGUMENT;
}
