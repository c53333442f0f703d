// What verification needs: patterns written and compared, as backends/protocol.py defines them.

typedef unsigned long long u64;

enum { WORDS, CONSTANT, SPLIT };

__device__ __forceinline__ u64 word(u64 index, u64 seed)
{
    u64 x = (index + seed * 0xD1B54A32D192ED03ull) * 0x9E3779B97F4A7C15ull;
    return x ^ x >> 29;
}

__device__ __forceinline__ u64 expected(u64 index, u64 seed, int pattern)
{
    if (pattern == CONSTANT)
        return word(0, seed);
    const u64 plain = word(index, seed);
    return pattern == SPLIT && (index >> 6 & 1) == 0 ? ~plain : plain;  // 64 words a chunk
}

extern "C" __global__ void __launch_bounds__(512)
    fill(ulonglong2* buffer, u64 size, u64 seed, int pattern, u64 flip)
{
    const u64 units = size / 16;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 self = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 unit = self; unit < units; unit += threads)
        buffer[unit] = make_ulonglong2(expected(2 * unit, seed, pattern) ^ flip,
                                       expected(2 * unit + 1, seed, pattern) ^ flip);
    if (self < size % 16) {
        const u64 value = expected(2 * units + self / 8, seed, pattern) ^ flip;
        ((unsigned char*)buffer)[units * 16 + self] = (unsigned char)(value >> self % 8 * 8);
    }
}

// *first = min(*first, offset of the first byte that differs).
extern "C" __global__ void __launch_bounds__(512)
    compare(const ulonglong2* buffer, u64 size, u64 seed, int pattern, u64* first)
{
    const u64 units = size / 16;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 self = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 found = ~0ull;
#pragma unroll 4
    for (u64 unit = self; unit < units; unit += threads) {
        const ulonglong2 value = buffer[unit];
        const u64 low = value.x ^ expected(2 * unit, seed, pattern);
        const u64 high = value.y ^ expected(2 * unit + 1, seed, pattern);
        if ((low | high) != 0) {
            const u64 byte = low != 0 ? (__ffsll(low) - 1) / 8 : 8 + (__ffsll(high) - 1) / 8;
            found = min(found, 16 * unit + byte);
        }
    }
    if (self < size % 16) {
        const u64 at = units * 16 + self;
        const u64 value = expected(at / 8, seed, pattern) >> self % 8 * 8;
        if (((const unsigned char*)buffer)[at] != (unsigned char)value)
            found = min(found, at);
    }
    if (found != ~0ull)
        atomicMin(first, found);
}
