// What device_memory_* is compared with: plain kernels over arrays, as BabelStream and others have
// them, in several shapes, and cudaMemcpy. Compiled by nvcc into a library. All return seconds of all
// loops, or a negative CUDA error.

#include <cuda_runtime.h>

namespace {

enum Kind { READ, WRITE, COPY, TRIAD };

template <Kind kind>
__device__ __forceinline__ void one(double2* a, const double2* b, const double2* c, size_t at,
                                    double& sum)
{
    if (kind == READ) {
        const double2 value = b[at];
        sum += value.x + value.y;
    } else if (kind == WRITE) {
        a[at] = make_double2(1.0, 1.0);
    } else if (kind == COPY) {
        a[at] = b[at];
    } else {
        const double2 x = b[at], y = c[at];
        a[at] = make_double2(x.x + 3 * y.x, x.y + 3 * y.y);
    }
}

// A thread for each 16 bytes.
template <Kind kind>
__global__ void each(double2* a, const double2* b, const double2* c, size_t count, double* sink)
{
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    if (at < count)
        one<kind>(a, b, c, at, sum);
    if (kind == READ && sum == 0.12345)  // never: it keeps the loads
        *sink = sum;
}

// As many threads as run at once, which stride through the arrays.
template <Kind kind>
__global__ void stride(double2* a, const double2* b, const double2* c, size_t count, double* sink)
{
    double sum = 0;
    const size_t threads = (size_t)gridDim.x * blockDim.x;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads)
        one<kind>(a, b, c, at, sum);
    if (kind == READ && sum == 0.12345)
        *sink = sum;
}

template <Kind kind>
void launch(double2* a, const double2* b, const double2* c, size_t count, int threads, int blocks)
{
    double* sink = reinterpret_cast<double*>(a ? a : const_cast<double2*>(b));
    if (blocks == 0)
        each<kind><<<(count + threads - 1) / threads, threads>>>(a, b, c, count, sink);
    else
        stride<kind><<<blocks, threads>>>(a, b, c, count, sink);
}

struct Timer {
    cudaEvent_t begin, end;
    Timer()
    {
        cudaEventCreate(&begin);
        cudaEventCreate(&end);
    }
    ~Timer()
    {
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
    }
    void start() { cudaEventRecord(begin); }
    double stop()
    {
        cudaEventRecord(end);
        cudaError_t error = cudaEventSynchronize(end);
        if (error == cudaSuccess)
            error = cudaGetLastError();
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, begin, end);
        return error == cudaSuccess ? milliseconds * 1e-3 : -static_cast<double>(error);
    }
};

}  // namespace

// `blocks` is 0 for a thread for each 16 bytes. The first loop warms up and is not timed.
extern "C" double run_kernel(int kind, void* a, const void* b, const void* c, size_t size,
                             int threads, int blocks, int loops)
{
    auto* to = static_cast<double2*>(a);
    const auto *from = static_cast<const double2*>(b), *other = static_cast<const double2*>(c);
    const size_t count = size / sizeof(double2);
    void (*const kernels[])(double2*, const double2*, const double2*, size_t, int, int) = {
        launch<READ>, launch<WRITE>, launch<COPY>, launch<TRIAD>};
    Timer timer;
    kernels[kind](to, from, other, count, threads, blocks);
    timer.start();
    for (int loop = 0; loop < loops; ++loop)
        kernels[kind](to, from, other, count, threads, blocks);
    return timer.stop();
}

extern "C" double run_memcpy(void* a, const void* b, size_t size, int loops)
{
    Timer timer;
    cudaMemcpyAsync(a, b, size, cudaMemcpyDeviceToDevice);
    timer.start();
    for (int loop = 0; loop < loops; ++loop)
        cudaMemcpyAsync(a, b, size, cudaMemcpyDeviceToDevice);
    return timer.stop();
}
