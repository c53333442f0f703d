// Loads a link while something else is measured: copies at a steady pace until the host says stop.

#include "progress.cuh"

// Tiles of a thread's 16 bytes each, over and over from the first to the last, the blocks in turn.
// A block begins a tile every `pace` nanoseconds (0: at once), and the blocks one after another, so
// that the link carries an even stream. `signals` are in the host's memory: the first becomes 1 as
// the load begins, and the second one ends it, as do `limit` nanoseconds. Whatever the time, each
// byte is copied once.
//
// done: whether it is over; tiles copied until then; when it began and when it was over, in
// nanoseconds: 0 if that was the limit's doing.
extern "C" __global__ void load(uint4* destination, const uint4* source, u64 tiles, u64 pace,
                                volatile u64* signals, u64 limit, volatile u64* done)
{
    const u64 began = nanoseconds();
    const bool first = threadIdx.x == 0, leads = first && blockIdx.x == 0;
    if (leads) {
        done[2] = began;
        signals[0] = 1;
    }
    u64 due = began + pace * blockIdx.x / gridDim.x;
    u64 copied = 0;
    bool over = false;
    for (u64 tile = blockIdx.x;; tile += gridDim.x) {
        bool ends = over;
        if (first && !over) {
            if (leads && (signals[1] != 0 || nanoseconds() - began > limit)) {
                if (signals[1] != 0)
                    done[3] = nanoseconds();
                done[0] = 1;
            }
            ends = done[0] != 0 || nanoseconds() - began > 2 * limit;
            if (ends)
                atomicAdd((u64*)&done[1], copied);
            else
                while (pace != 0 && nanoseconds() < due) {
                }
            due += pace;
        }
        // No shared memory: a kernel that has some may keep others from its multiprocessors.
        over = __syncthreads_or(ends);
        if (over && tile >= tiles)
            return;
        const u64 at = tile % tiles * blockDim.x + threadIdx.x;
        destination[at] = source[at];
        ++copied;
    }
}
