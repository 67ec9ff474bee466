/* nearfield.cu - nearfield.c with the GPU parts of the headers, for Python on device arrays.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -O3 -arch=native -cudart static -shared -Xcompiler -fPIC -I. \
           packaging/python/library/nearfield.cu -o build/cuda/libnearfield_cuda.so

   and for doubles nearfield64.cu, as libnearfield64_cuda.so. Everything of the CPU is in these
   libraries, too. */

#define UGRID_CUDA
#define LBVH_CUDA
#define NLIST_CUDA
#define NBODY_CUDA
#include "nearfield.c"

extern "C" {

/* What Python needs of CUDA itself, so that it asks for no other library. Memory that belongs to a
   stream; NULL: there is none. */
NEARFIELD_API void *nearfield_cuda_alloc(size_t bytes, cudaStream_t stream)
{
    void *memory = nullptr;
    return cudaMallocAsync(&memory, bytes, stream) == cudaSuccess ? memory : nullptr;
}

NEARFIELD_API int nearfield_cuda_free(void *memory, cudaStream_t stream)
{
    return (int)cudaFreeAsync(memory, stream);
}

/* Copies from the GPU, to the host or to another place there, and waits for it. */
NEARFIELD_API int nearfield_cuda_fetch(void *to, const void *d_from, size_t bytes,
                                       cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    if (bytes > 0) error = cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDefault, stream);
    return (int)(error != cudaSuccess ? error : cudaStreamSynchronize(stream));
}

/* The number of the GPU that has this memory; -1: none. */
NEARFIELD_API int nearfield_cuda_device(const void *d_memory)
{
    cudaPointerAttributes about;
    return cudaPointerGetAttributes(&about, d_memory) == cudaSuccess ? about.device : -1;
}

/* What is called on stream `then` from now on waits for what was called on stream `first`. */
NEARFIELD_API int nearfield_cuda_order(cudaStream_t first, cudaStream_t then)
{
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess) return (int)error;
    error = cudaEventRecord(event, first);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(then, event, 0);
    cudaError_t const destroyed = cudaEventDestroy(event);
    return (int)(error != cudaSuccess ? error : destroyed);
}

} // extern "C"

#include "few.cuh"
#include "near.cuh"
