// Copies by the bulk copy unit (compute capability 9.0): one thread of each block moves chunks of
// STAGE bytes through a ring of STAGES of them in shared memory. AHEAD loads are under way before
// a chunk is stored; the other STAGES - AHEAD chunks may still be read by stores. With PROGRESS, it
// records in `words` when it began and ended each of `laps`.

#include "progress.cuh"

#ifndef STAGE
#define STAGE 32768
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef AHEAD
#define AHEAD 2
#endif
#ifndef PROGRESS
#define PROGRESS 0
#endif

static_assert(AHEAD > 0 && AHEAD < STAGES, "a ring needs both loads and stores");

__device__ __forceinline__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void load_chunk(unsigned stage, const char* from, unsigned bytes,
                                           unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(stage),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void store_chunk(char* to, unsigned stage, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(stage), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits for the phase of this parity. Each try suspends the thread for a while in hardware; after
// so many that seconds have passed the load will never come, and a trap is better than a hang.
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    unsigned done = 0;
    for (u64 tries = 0; !done; ++tries) {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
        if (tries > 100000000)
            __trap();
    }
}

// Chunk i of `loops` passes laid end to end belongs to block i % gridDim.x. Needs
// STAGES * STAGE bytes of dynamic shared memory and 16-byte aligned ends.
extern "C" __global__ void copy(char* destination, const char* source, u64 size, u64 loops
#if PROGRESS
                                ,
                                u64* words, u64 laps
#endif
)
{
    extern __shared__ __align__(128) char ring[];
    __shared__ __align__(8) u64 barriers[STAGES];

    const u64 whole = size / 16 * 16;
    const u64 chunks = (whole + STAGE - 1) / STAGE;
    if (threadIdx.x != 0) {
        // The last size % 16 bytes: the bulk unit moves multiples of 16.
        const unsigned lane = threadIdx.x - 1;
        if (blockIdx.x == 0 && lane < size % 16)
            for (u64 loop = 0; loop < loops; ++loop)
                ((volatile char*)destination)[whole + lane] =
                    ((const volatile char*)source)[whole + lane];
        return;
    }
    const u64 all = chunks * loops;
    if (blockIdx.x >= all)
        return;
    for (int i = 0; i < STAGES; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barriers[i]))
                     : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");

    const u64 mine = (all - blockIdx.x + gridDim.x - 1) / gridDim.x;
#if PROGRESS
    Progress progress(words, laps, all, mine);
#endif
    for (u64 i = 0; i < mine + AHEAD; ++i) {
        if (i >= AHEAD) {  // chunk i - AHEAD has been asked for: store it once it is here
            const u64 turn = i - AHEAD;
            const u64 offset = (turn * gridDim.x + blockIdx.x) % chunks * STAGE;
            const unsigned bytes = (unsigned)min((u64)STAGE, whole - offset);
            wait_for(shared_address(&barriers[turn % STAGES]), turn / STAGES & 1);
            store_chunk(destination + offset, shared_address(ring + turn % STAGES * STAGE), bytes);
#if PROGRESS
            progress.step();
#endif
        }
        if (i < mine) {
            // Its stage was stored from at turn i - STAGES; since then STAGES - AHEAD stores were
            // committed, so with no more than that many pending, that one has read its stage.
            asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(STAGES - AHEAD) : "memory");
            const u64 offset = (i * gridDim.x + blockIdx.x) % chunks * STAGE;
            const unsigned bytes = (unsigned)min((u64)STAGE, whole - offset);
            load_chunk(shared_address(ring + i % STAGES * STAGE), source + offset, bytes,
                       shared_address(&barriers[i % STAGES]));
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#if PROGRESS
    progress.report();
#endif
}
