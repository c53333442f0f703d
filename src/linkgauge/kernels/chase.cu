// Pointer chase: one thread follows a ring of pointers, each load waiting for the one before.

typedef unsigned long long u64;

#ifndef BULK
#define BULK 0
#endif

// Node i of `count`, `stride` bytes apart, points at node i + 1, the last at the first.
extern "C" __global__ void link(char* buffer, u64 count, u64 stride)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads)
        *(char**)(buffer + i * stride) = buffer + (i + 1) % count * stride;
}

// Only block `chaser` works, so that a launch for each block measures from each multiprocessor.
extern "C" __global__ void chase(void** start, unsigned accesses, unsigned chaser)
{
    if (blockIdx.x != chaser)
        return;
    void** node = start;
    for (unsigned i = 0; i < accesses; ++i)
        node = (void**)*node;
    if (node == nullptr)  // never: it keeps the loads
        __trap();
}

#if BULK
#include "bulk.cuh"

// The same by the bulk copy unit: each load brings a node to shared memory, where its pointer is
// read.
extern "C" __global__ void bulk_chase(const char* start, unsigned accesses, unsigned chaser)
{
    __shared__ __align__(16) const char* node[2];
    __shared__ __align__(8) u64 barrier;
    if (blockIdx.x != chaser)
        return;
    const Shared here = shared_address(node), loaded = shared_address(&barrier);
    begin_barrier(loaded);
    begin_bulk_copies();
    const char* at = start;
    for (unsigned i = 0; i < accesses; ++i) {
        load_chunk(here, at, sizeof node, loaded);
        wait_for(loaded, i & 1);
        at = *(const char* volatile*)node;
    }
    if (at == nullptr)  // never: it keeps the loads
        __trap();
}
#endif
