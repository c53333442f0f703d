// Pure reads and pure writes by threads, 16 bytes an access, UNROLL of them in flight.

typedef unsigned long long u64;

#ifndef UNROLL
#define UNROLL 8
#endif

__device__ __forceinline__ ulonglong2 load(const ulonglong2* from)
{
    ulonglong2 value;
    // Volatile: what is read is not needed in all passes, but must be read.
    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.x), "=l"(value.y) : "l"(from));
    return value;
}

// Reads `size` bytes `loops` times; *checksum ^= the xor of the 64-bit words, once for all loops.
extern "C" __global__ void __launch_bounds__(512)
    read(const ulonglong2* source, u64 size, u64 loops, u64* checksum)
{
    const u64 units = size / 16;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 self = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 sum = 0;
    for (u64 loop = 0; loop < loops; ++loop) {
        sum = 0;
        for (u64 unit = self; unit < units; unit += UNROLL * threads) {
            ulonglong2 value[UNROLL];
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                if (unit + i * threads < units)
                    value[i] = load(source + unit + i * threads);
                else
                    value[i] = make_ulonglong2(0, 0);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                sum ^= value[i].x ^ value[i].y;
        }
        if (self < size % 16)
            sum ^= (u64)((const volatile unsigned char*)source)[units * 16 + self]
                   << self % 8 * 8;
    }
    for (int offset = 16; offset > 0; offset /= 2)
        sum ^= __shfl_xor_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0 && sum != 0)
        atomicXor(checksum, sum);
}

// Writes `word` over `size` bytes, `loops` times.
extern "C" __global__ void __launch_bounds__(512)
    write(ulonglong2* destination, u64 size, u64 loops, u64 word)
{
    const u64 units = size / 16;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 self = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 loop = 0; loop < loops; ++loop) {
        for (u64 unit = self; unit < units; unit += threads)
            asm volatile("st.global.v2.u64 [%0], {%1, %1};" ::"l"(destination + unit), "l"(word)
                         : "memory");
        if (self < size % 16)
            ((volatile unsigned char*)destination)[units * 16 + self] =
                (unsigned char)(word >> self % 8 * 8);
    }
}
