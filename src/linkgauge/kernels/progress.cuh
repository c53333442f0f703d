// The device's clock, and how far a copy kernel is that carries out all loops in one launch.
#pragma once

typedef unsigned long long u64;

__device__ __forceinline__ u64 nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// All blocks of a kernel share `words`: the steps that they have done, then when the kernel began
// and when it had done 1/batches, 2/batches … of `all` its steps. A block reports 1/batches of its own at a
// time: so seldom that it costs nothing. One thread of each block holds this, and counts a step once
// the block has issued its copies.
struct Progress {
    u64* words;
    u64 batches;
    u64 all;
    u64 each;
    u64 done;

    __device__ __forceinline__ Progress(u64* words_, u64 batches_, u64 all_, u64 own)
        : words(words_), batches(batches_), all(all_), each(own > batches_ ? own / batches_ : 1), done(0)
    {
        if (blockIdx.x == 0 && threadIdx.x == 0)
            words[1] = nanoseconds();
    }

    __device__ __forceinline__ void step()
    {
        if (++done == each)
            report();
    }

    // Also at the block's end.
    __device__ __forceinline__ void report()
    {
        if (done == 0)
            return;
        const u64 before = atomicAdd(words, done);
        for (u64 batch = before * batches / all + 1; batch * all <= (before + done) * batches; ++batch)
            words[1 + batch] = nanoseconds();
        done = 0;
    }
};
