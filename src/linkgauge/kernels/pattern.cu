// What verification needs: patterns written and compared, as backends/protocol.py defines them.

typedef unsigned long long u64;

enum { WORDS, CONSTANT, SPLIT, NUMBERS, SCALED, ADDED, TRIAD };

__device__ __forceinline__ u64 word(u64 index, u64 seed)
{
    u64 x = (index + seed * 0xD1B54A32D192ED03ull) * 0x9E3779B97F4A7C15ull;
    return x ^ x >> 29;
}

// The number of a word, from 1 to 2: sums and triples of such numbers are exact.
__device__ __forceinline__ double number(u64 word)
{
    return __longlong_as_double((long long)(0x3FF0000000000000ull | word >> 16 << 4));
}

// Of an array of `count` words.
__device__ __forceinline__ u64 expected(u64 index, u64 seed, int pattern, u64 count)
{
    if (pattern == CONSTANT)
        return word(0, seed);
    if (pattern >= NUMBERS) {
        const double b = number(word(index, seed)), c = number(word(index + count, seed));
        const double value = pattern == NUMBERS ? b
                             : pattern == SCALED ? 3 * b
                             : pattern == ADDED  ? b + c
                                                 : b + 3 * c;
        return (u64)__double_as_longlong(value);
    }
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
        buffer[unit] = make_ulonglong2(expected(2 * unit, seed, pattern, size / 8) ^ flip,
                                       expected(2 * unit + 1, seed, pattern, size / 8) ^ flip);
    if (self < size % 16) {
        const u64 value = expected(2 * units + self / 8, seed, pattern, size / 8) ^ flip;
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
        const u64 low = value.x ^ expected(2 * unit, seed, pattern, size / 8);
        const u64 high = value.y ^ expected(2 * unit + 1, seed, pattern, size / 8);
        if ((low | high) != 0) {
            const u64 byte = low != 0 ? (__ffsll(low) - 1) / 8 : 8 + (__ffsll(high) - 1) / 8;
            found = min(found, 16 * unit + byte);
        }
    }
    if (self < size % 16) {
        const u64 at = units * 16 + self;
        const u64 value = expected(at / 8, seed, pattern, size / 8) >> self % 8 * 8;
        if (((const unsigned char*)buffer)[at] != (unsigned char)value)
            found = min(found, at);
    }
    if (found != ~0ull)
        atomicMin(first, found);
}
