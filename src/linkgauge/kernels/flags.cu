// What host and devices say to each other through flags, words that both see.

#include "progress.cuh"

// Waits until the flag is `value`; false if that takes more than `limit` nanoseconds.
__device__ bool await(const volatile u64* flag, u64 value, u64 limit)
{
    u64 deadline = 0;  // from the first look at the clock
    for (unsigned spins = 1; *flag != value; ++spins) {
        if (spins % 256 != 0)
            continue;
        const u64 now = nanoseconds();
        if (deadline == 0)
            deadline = now + limit;
        if (now > deadline)
            return false;
    }
    return true;
}

// A moment at which the clock of nanoseconds advances: on some devices it does so in long steps.
__device__ u64 edge()
{
    const u64 before = nanoseconds();
    u64 now = before;
    while (now == before)
        now = nanoseconds();
    return now;
}

// One side of a ping-pong: values from `first` on, `count` of them, go to `theirs` and come back in
// `mine`. Who has a `report` begins; the other one answers. Either side gives up that hears nothing
// for `limit` nanoseconds, so that no device spins on if the other side died.
//
// report: the values that came back; nanoseconds, and the ticks of the clock in them; when, by ticks,
// the first value left and each came back.
extern "C" __global__ void bounce(volatile u64* mine, volatile u64* theirs, u64 first, u64 count,
                                  u64 limit, u64* report)
{
    if (!report) {
        for (u64 i = 0; i < count && await(mine, first + i, limit); ++i)
            *theirs = first + i;
        return;
    }
    const u64 began = edge();
    const u64 ticks = clock64();
    u64 done = 0;
    report[3] = ticks;
    for (; done < count; ++done) {
        *theirs = first + done;
        if (!await(mine, first + done, limit))
            break;
        report[4 + done] = clock64();
    }
    report[0] = done;
    u64 now = edge();
    while (now - began < 1000000)
        now = edge();
    report[1] = now - began;
    report[2] = clock64() - ticks;
}

// The doorbell's answer: a store that the host waits for.
extern "C" __global__ void answer(volatile u64* word, u64 value)
{
    *word = value;
}

extern "C" __global__ void nothing() {}
