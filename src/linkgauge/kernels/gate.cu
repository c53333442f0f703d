// The gate: one thread spins on a flag in pinned host memory, so that the copies enqueued behind it
// start only when the host says so. It gives up by itself, so that a controller that died leaves
// no spinning device behind.

#include "progress.cuh"

// state[0]: 0 closed, else open. state[1]: becomes 1 if the gate gave up after `limit` ns. Where
// `opened` is given, it becomes the time at which the gate opened.
extern "C" __global__ void gate(volatile unsigned* state, u64 limit, u64* opened)
{
    const u64 begin = nanoseconds();
    while (state[0] == 0) {
        if (nanoseconds() - begin > limit) {
            state[1] = 1;
            __threadfence_system();
            return;
        }
    }
    if (opened)
        *opened = nanoseconds();
}
