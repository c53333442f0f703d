// Copies by the bulk copy unit (compute capability 9.0): one thread of each block moves chunks of
// STAGE bytes through a ring of STAGES of them in shared memory. AHEAD loads are under way before
// a chunk is stored; the other STAGES - AHEAD chunks may still be read by stores. With PROGRESS, it
// records in `words` when it began and ended each of `batches`.

#include "bulk.cuh"
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

// Chunk i of `loops` passes laid end to end belongs to block i % gridDim.x. Needs
// STAGES * STAGE bytes of dynamic shared memory and 16-byte aligned ends.
extern "C" __global__ void copy(char* destination, const char* source, u64 size, u64 loops
#if PROGRESS
                                ,
                                u64* words, u64 batches
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
        begin_barrier(shared_address(&barriers[i]));
    begin_bulk_copies();

    const u64 mine = (all - blockIdx.x + gridDim.x - 1) / gridDim.x;
#if PROGRESS
    Progress progress(words, batches, all, mine);
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
            await_reads<STAGES - AHEAD>();
            const u64 offset = (i * gridDim.x + blockIdx.x) % chunks * STAGE;
            const unsigned bytes = (unsigned)min((u64)STAGE, whole - offset);
            load_chunk(shared_address(ring + i % STAGES * STAGE), source + offset, bytes,
                       shared_address(&barriers[i % STAGES]));
        }
    }
    await_stores();
#if PROGRESS
    progress.report();
#endif
}
