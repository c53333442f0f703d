// The bulk copy unit (compute capability 9.0): loads into shared memory that a barrier awaits, and
// stores from it. Addresses and sizes are multiples of 16 bytes.

#pragma once

typedef unsigned long long u64;
typedef unsigned Shared;  // an address in shared memory

__device__ __forceinline__ Shared shared_address(const void* pointer)
{
    return (Shared)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void load_chunk(Shared stage, const char* from, unsigned bytes,
                                           Shared barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(stage),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void store_chunk(char* to, Shared stage, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(stage), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Whether the phase of this parity has ended. A try suspends the thread for a while in hardware.
__device__ __forceinline__ bool has_arrived(Shared barrier, unsigned parity)
{
    unsigned done;
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}

// Waits for the phase of this parity. After so many tries that seconds have passed the load will
// never come, and a trap is better than a hang.
__device__ __forceinline__ void wait_for(Shared barrier, unsigned parity)
{
    for (u64 tries = 0; !has_arrived(barrier, parity); ++tries)
        if (tries > 100000000)
            __trap();
}

// A barrier on which one load after another is awaited.
__device__ __forceinline__ void begin_barrier(Shared barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

// Makes the barriers known to the bulk copy unit.
__device__ __forceinline__ void begin_bulk_copies()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Waits until all stores but the last PENDING have read their chunk of shared memory.
template <int PENDING> __device__ __forceinline__ void await_reads()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Waits until all stores are in memory.
__device__ __forceinline__ void await_stores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
