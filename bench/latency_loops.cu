// What latency_* is compared with: loops in C++ over the CUDA driver that time each iteration. Compiled
// by nvcc into a library. Each function fills `took` with the nanoseconds of each of `count` iterations
// after some that are not timed, and returns 0 or a CUDA error.

#include <cuda.h>
#include <cuda_runtime.h>

#include <ctime>

namespace {

constexpr int kWarmUps = 8;

long long now()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

template <typename Body>
int timed(Body&& body, int count, long long* took)
{
    for (int i = -kWarmUps; i < count; ++i) {
        const long long begin = now();
        const int error = body();
        const long long end = now();
        if (error != 0)
            return error;
        if (i >= 0)
            took[i] = end - begin;
    }
    return 0;
}

__global__ void empty() {}

__global__ void ring(volatile int* word, int value) { *word = value; }

__device__ long long globaltimer()
{
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// `leader` sends 1, 2, … and waits for each to come back; the other returns what it hears.
__global__ void volley(volatile int* in, volatile int* out, int rounds, bool leader, long long* took)
{
    for (int i = 1; i <= rounds; ++i) {
        const long long begin = globaltimer();
        if (leader)
            *out = i;
        while (*in != i)
            if (globaltimer() - begin > 2000000000LL)
                return;
        if (!leader)
            *out = i;
        else if (i > kWarmUps)
            took[i - 1 - kWarmUps] = globaltimer() - begin;
    }
}

struct Stream {
    cudaStream_t at;
    Stream() { cudaStreamCreateWithFlags(&at, cudaStreamNonBlocking); }
    ~Stream() { cudaStreamDestroy(at); }
};

CUfunction function_of(const void* kernel)
{
    cudaFunction_t found;
    cudaGetFuncBySymbol(&found, kernel);
    return reinterpret_cast<CUfunction>(found);
}

CUdeviceptr at(void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

extern "C" {

int copies(void* near, void* far, size_t size, int count, long long* took)
{
    Stream stream;
    return timed(
        [&] {
            cuMemcpyAsync(at(far), at(near), size, stream.at);
            cuStreamSynchronize(stream.at);
            cuMemcpyAsync(at(near), at(far), size, stream.at);
            return cuStreamSynchronize(stream.at);
        },
        count, took);
}

int launches(int count, long long* took)
{
    Stream stream;
    const CUfunction kernel = function_of(reinterpret_cast<const void*>(empty));
    return timed(
        [&] {
            cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream.at, nullptr, nullptr);
            return cuStreamSynchronize(stream.at);
        },
        count, took);
}

int syncs(int count, long long* took)
{
    Stream stream;
    return timed([&] { return cuStreamSynchronize(stream.at); }, count, took);
}

int events(int count, long long* took)
{
    Stream stream;
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    const int error = timed(
        [&] {
            cuEventRecord(event, stream.at);
            return cuEventSynchronize(event);
        },
        count, took);
    cudaEventDestroy(event);
    return error;
}

int graphs(int count, long long* took)
{
    Stream stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaKernelNodeParams kernel{};
    kernel.func = reinterpret_cast<void*>(empty);
    kernel.gridDim = kernel.blockDim = dim3(1);
    cudaGraphNode_t node;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel);
    cudaGraphInstantiate(&ready, graph, 0);
    const int error = timed(
        [&] {
            cuGraphLaunch(ready, stream.at);
            return cuStreamSynchronize(stream.at);
        },
        count, took);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    return error;
}

int doorbells(int count, long long* took)
{
    Stream stream;
    volatile int* word;
    cudaHostAlloc((void**)&word, 64, cudaHostAllocMapped);
    *word = 0;
    int value = 0;
    void* arguments[] = {(void*)&word, &value};
    const CUfunction kernel = function_of(reinterpret_cast<const void*>(ring));
    const int error = timed(
        [&] {
            ++value;
            cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream.at, arguments, nullptr);
            const long long begin = now();
            for (long spins = 0; *word != value; ++spins)
                if (spins % 100000 == 99999 && now() - begin > 2000000000LL)
                    return 1;
            return 0;
        },
        count, took);
    cudaStreamSynchronize(stream.at);
    cudaFreeHost((void*)word);
    return error;
}

// The host leads; both flags lie in its memory.
int host_flags(int count, long long* took)
{
    Stream stream;
    int* flags;
    cudaHostAlloc((void**)&flags, 256, cudaHostAllocMapped);
    flags[0] = flags[32] = 0;
    volatile int *out = flags, *in = flags + 32;
    volley<<<1, 1, 0, stream.at>>>(out, in, 0, false, nullptr);
    cudaStreamSynchronize(stream.at);
    volley<<<1, 1, 0, stream.at>>>(out, in, count + kWarmUps, false, nullptr);
    int value = 0;
    const int error = timed(
        [&] {
            *out = ++value;
            const long long begin = now();
            for (long spins = 0; *in != value; ++spins)
                if (spins % 100000 == 99999 && now() - begin > 2000000000LL)
                    return 1;
            return 0;
        },
        count, took);
    cudaStreamSynchronize(stream.at);
    cudaFreeHost(flags);
    return error;
}

// Device `one` leads, `other` answers; the same device may do both.
int device_flags(int one, int other, int count, long long* took)
{
    int *mine, *theirs;
    long long* times;
    if (one != other) {
        cudaSetDevice(other);
        cudaDeviceEnablePeerAccess(one, 0);
    }
    Stream answering;
    cudaMalloc((void**)&theirs, 256);
    cudaMemset(theirs, 0, 256);
    volley<<<1, 1, 0, answering.at>>>(theirs, theirs, 0, false, nullptr);
    cudaDeviceSynchronize();
    cudaSetDevice(one);
    if (one != other)
        cudaDeviceEnablePeerAccess(other, 0);
    Stream leading;
    cudaMalloc((void**)&mine, 256);
    cudaMemset(mine, 0, 256);
    cudaMalloc((void**)&times, count * sizeof(long long));
    volley<<<1, 1, 0, leading.at>>>(mine, mine, 0, true, nullptr);
    cudaDeviceSynchronize();
    cudaGetLastError();  // that access was enabled already
    cudaSetDevice(other);
    volley<<<1, 1, 0, answering.at>>>(theirs, mine, count + kWarmUps, false, nullptr);
    cudaSetDevice(one);
    volley<<<1, 1, 0, leading.at>>>(mine, theirs, count + kWarmUps, true, times);
    cudaStreamSynchronize(leading.at);
    int error = cudaMemcpy(took, times, count * sizeof(long long), cudaMemcpyDefault);
    cudaStreamSynchronize(answering.at);
    cudaFree(times);
    cudaFree(mine);
    cudaFree(theirs);
    return error;
}

}  // extern "C"
