// Copies by threads, 16 bytes an access, UNROLL of them in flight in each thread.
//
// A block moves UNROLL rows of THREADS * 16 bytes at a time. The rows lie side by side (a tile), or
// with SPREAD a whole grid's width apart, so that all blocks together sweep through memory. Passes
// are laid end to end, so that no block idles between them. Compiled for each variant:
//   UNROLL     accesses in flight
//   THREADS    threads of a block, a multiple of 64: what the kernel must be launched with
//   SPREAD     1: rows a grid's width apart, 0: side by side
//   IN_PLACE   1: all loops of a step before the next step, past the L1 cache (nvbandwidth's order
//              in its split-warp kernel), 0: whole passes, one after the other
//   STREAMING  1: evict-first loads and stores (ld.cs, st.cs), 0: the default
//   SPLIT      1: odd 512-byte chunks go to the destination, even ones come back; 0: all go
//   PROGRESS   1: records in `words` when it began and ended each of `batches`; 0, unless given: nothing

#include "progress.cuh"

#ifndef PROGRESS
#define PROGRESS 0
#endif

static_assert(THREADS % 64 == 0, "a warp must keep to chunks of one parity");

__device__ __forceinline__ uint4 load(const uint4* from)
{
    if (STREAMING)
        return __ldcs(from);
    return IN_PLACE ? __ldcg(from) : *from;
}

__device__ __forceinline__ void store(uint4* to, uint4 value)
{
    if (STREAMING)
        __stcs(to, value);
    else if (IN_PLACE)
        __stcg(to, value);
    else
        *to = value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    copy(uint4* destination, uint4* source, u64 size, u64 loops
#if PROGRESS
         ,
         u64* words, u64 batches
#endif
    )
{
    const u64 units = size / 16;
    const u64 width = SPREAD ? (u64)gridDim.x * THREADS : THREADS;
    const u64 step = UNROLL * width;
    const u64 steps = (units + step - 1) / step;
    const u64 all = IN_PLACE ? steps : steps * loops;
    const u64 repeats = IN_PLACE ? loops : 1;
    // Spread, every block takes part in every step; else each has steps of its own.
    const unsigned first = SPREAD ? 0 : blockIdx.x;
    const unsigned next = SPREAD ? 1 : gridDim.x;
    const u64 lane = SPREAD ? (u64)blockIdx.x * THREADS + threadIdx.x : threadIdx.x;

    // A warp's access is one chunk of 512 bytes, and THREADS is even in chunks: a warp meets only
    // chunks of its own parity.
    const bool back = SPLIT && (threadIdx.x / 32 & 1) == 0;
    const uint4* from = (back ? destination : source) + lane;
    uint4* to = (back ? source : destination) + lane;

#if PROGRESS
    const u64 own = all > first ? (all - first + next - 1) / next : 0;
    Progress progress(words, batches, SPREAD ? all * gridDim.x : all, own);
#endif
    u64 at = steps > 0 ? first % steps : 0;
    for (u64 done = first; done < all; done += next) {
        const u64 base = at * step;
        for (u64 repeat = 0; repeat < repeats; ++repeat) {
            uint4 value[UNROLL];
            if (base + step <= units) {
#pragma unroll
                for (int i = 0; i < UNROLL; ++i)
                    value[i] = load(from + base + i * width);
#pragma unroll
                for (int i = 0; i < UNROLL; ++i)
                    store(to + base + i * width, value[i]);
            } else {
                const u64 left = units - base;
#pragma unroll
                for (int i = 0; i < UNROLL; ++i)
                    if (lane + i * width < left)
                        value[i] = load(from + base + i * width);
#pragma unroll
                for (int i = 0; i < UNROLL; ++i)
                    if (lane + i * width < left)
                        store(to + base + i * width, value[i]);
            }
        }
#if PROGRESS
        if (threadIdx.x == 0)
            progress.step();
#endif
        for (at += next; at >= steps;)
            at -= steps;
    }
#if PROGRESS
    if (threadIdx.x == 0)
        progress.report();
#endif

    // The last size % 16 bytes, by as many threads.
    if (blockIdx.x == 0 && threadIdx.x < size % 16) {
        const bool returns = SPLIT && (units / 32 & 1) == 0;
        const u64 byte = units * 16 + threadIdx.x;
        volatile char* tail_from = (volatile char*)(returns ? destination : source);
        volatile char* tail_to = (volatile char*)(returns ? source : destination);
        for (u64 loop = 0; loop < loops; ++loop)
            tail_to[byte] = tail_from[byte];
    }
}
