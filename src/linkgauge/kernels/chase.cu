// Pointer chase: one thread follows a ring of pointers, each load waiting for the one before.

typedef unsigned long long u64;

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
