// Computes in registers alone, for as many rounds as are asked for: what copies run beside.

typedef unsigned long long u64;

#define CHAINS 8
#define STEPS 32

__device__ __forceinline__ float first_of(int chain) { return 0.25f + chain / 16.0f; }

// A round is STEPS steps x * factor + summand of each chain. The host gives -1 and 1: x is then
// exactly 1 - x after a step, and what it was after two, but no compiler knows. Whoever finds
// otherwise says so in `wrong`; nothing else is written.
extern "C" __global__ void __launch_bounds__(256)
    multiply_add(u64 rounds, float factor, float summand, u64* wrong)
{
    float x[CHAINS];
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain)
        x[chain] = first_of(chain);
    for (u64 round = 0; round < rounds; ++round) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
#pragma unroll
            for (int chain = 0; chain < CHAINS; ++chain)
                x[chain] = x[chain] * factor + summand;
        }
    }
    bool right = true;
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain)
        right = right && x[chain] == first_of(chain);
    if (!right)
        *wrong = 1;
}
