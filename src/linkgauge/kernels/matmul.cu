// Matrices of N(0, 1) numbers, and the check of a product of two. Compiled for each type of numbers:
//   NUMBER  32: single precision, 16: FP16, 17: BF16
//
// Numbers are drawn by Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3,
// SC 2011), four from each value of its counter, and made normal by the transform of Box and Muller.

typedef unsigned long long u64;

#if NUMBER == 32
typedef float Number;
__device__ __forceinline__ float value_of(Number number) { return number; }
__device__ __forceinline__ Number number_of(float value) { return value; }
#elif NUMBER == 17
typedef unsigned short Number;
__device__ __forceinline__ float value_of(Number number)
{
    return __uint_as_float((unsigned)number << 16);
}
// The nearest, of two as near the even one; not for what is no number.
__device__ __forceinline__ Number number_of(float value)
{
    const unsigned bits = __float_as_uint(value);
    return (Number)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
#else
typedef unsigned short Number;
__device__ __forceinline__ float value_of(Number number)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(number));
    return value;
}
__device__ __forceinline__ Number number_of(float value)
{
    Number number;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(number) : "f"(value));
    return number;
}
#endif

__device__ __forceinline__ uint4 philox(u64 counter, u64 key)
{
    uint4 x = make_uint4((unsigned)counter, (unsigned)(counter >> 32), 0, 0);
    unsigned low = (unsigned)key, high = (unsigned)(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const u64 one = (u64)0xD2511F53 * x.x, other = (u64)0xCD9E8D57 * x.z;
        x = make_uint4((unsigned)(other >> 32) ^ x.y ^ low, (unsigned)other,
                       (unsigned)(one >> 32) ^ x.w ^ high, (unsigned)one);
        low += 0x9E3779B9;
        high += 0xBB67AE85;
    }
    return x;
}

// Two independent N(0, 1) numbers, of 24 bits each: at most 5.9.
__device__ __forceinline__ float2 normals(unsigned one, unsigned other)
{
    const float scale = 1.0f / (1 << 24);
    const float radius = sqrtf(-2.0f * logf(((float)(one >> 8) + 0.5f) * scale));
    float sine, cosine;
    sincospif(2.0f * scale * (float)(other >> 8), &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}

extern "C" __global__ void __launch_bounds__(256) draw(Number* numbers, u64 count, u64 seed)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; 4 * at < count; at += threads) {
        const uint4 bits = philox(at, seed);
        const float2 first = normals(bits.x, bits.y), second = normals(bits.z, bits.w);
        const float values[] = {first.x, first.y, second.x, second.y};
        for (int i = 0; i < 4 && 4 * at + i < count; ++i)
            numbers[4 * at + i] = number_of(values[i]);
    }
}

__device__ __forceinline__ u64 smaller(u64 one, u64 other) { return one < other ? one : other; }

// sums[row][block]: those of `width` neighbours in a row of a matrix of `order` rows, with signs that
// are the same in all rows.
extern "C" __global__ void __launch_bounds__(256)
    fold(const Number* matrix, double* sums, u64 order, u64 width, u64 seed)
{
    const u64 blocks = (order + width - 1) / width;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < order * blocks; at += threads) {
        const u64 row = at / blocks, begin = at % blocks * width;
        double sum = 0;
        for (u64 column = begin; column < smaller(begin + width, order); ++column) {
            const double value = value_of(matrix[row * order + column]);
            sum += philox(column, seed).x & 1 ? value : -value;
        }
        sums[at] = sum;
    }
}

// Multiplies `matrix` by the sums of the second factor, which gives what those of the product are to
// be. *first = min(*first, place of the first that is farther from it than `tolerance`).
extern "C" __global__ void __launch_bounds__(256)
    compare(const Number* matrix, const double* factor, const double* product, double* expected,
            u64 order, u64 width, double tolerance, u64* first)
{
    const u64 blocks = (order + width - 1) / width;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < order * blocks; at += threads) {
        const Number* row = matrix + at / blocks * order;
        double sum = 0;
        for (u64 inner = 0; inner < order; ++inner)
            sum += value_of(row[inner]) * factor[inner * blocks + at % blocks];
        expected[at] = sum;
        // Nor is what is no number within it.
        if (!(fabs(product[at] - sum) <= tolerance))
            atomicMin(first, at);
    }
}
