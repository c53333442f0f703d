// Pointer chase by the bulk copy unit (compute capability 9.0): each load brings 16 bytes to shared
// memory, where one thread reads the pointer to the next ones. chase.cu links the ring.

#include "bulk.cuh"

extern "C" __global__ void chase(const char* start, unsigned accesses, unsigned chaser)
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
        while (!has_arrived(loaded, i & 1))  // nothing else: it would count as latency
            ;
        at = *(const char* volatile*)node;
    }
    if (at == nullptr)  // never: it keeps the loads
        __trap();
}
