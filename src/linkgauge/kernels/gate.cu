// The gate: one thread spins on a flag in pinned host memory, so that the copies enqueued behind it
// start only when the host says so. It gives up by itself, so that a controller that died leaves
// no spinning device behind.

typedef unsigned long long u64;

__device__ __forceinline__ u64 nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// state[0]: 0 closed, else open. state[1]: becomes 1 if the gate gave up after `limit` ns.
extern "C" __global__ void gate(volatile unsigned* state, u64 limit)
{
    const u64 begin = nanoseconds();
    while (state[0] == 0) {
        if (nanoseconds() - begin > limit) {
            state[1] = 1;
            __threadfence_system();
            return;
        }
    }
}
