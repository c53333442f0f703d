// What STREAM does with arrays, in a device's own memory: 16 bytes an access, UNROLL of them in
// flight in each thread. A launch goes over the arrays once. Compiled for each variant:
//   KIND       0 reads b, 1 writes a, 2 copies a = b, 3 a = 3 b, 4 a = b + c, 5 a = b + 3 c
//   UNROLL     accesses in flight
//   THREADS    threads of a block, a multiple of 32: what the kernel must be launched with
//   SPREAD     1: a thread's accesses are a grid's width apart, 0: a block's width
//   STREAMING  1: evict-first loads and stores (ld.cs, st.cs), 0: the default

typedef unsigned long long u64;

enum { READ, WRITE, COPY, SCALE, ADD, TRIAD };

__device__ __forceinline__ ulonglong2 load(const ulonglong2* from)
{
    return STREAMING ? __ldcs(from) : *from;
}

__device__ __forceinline__ void store(ulonglong2* to, ulonglong2 value)
{
    if (STREAMING)
        __stcs(to, value);
    else
        *to = value;
}

// A number of a, by its bits, of those of b and c.
__device__ __forceinline__ u64 result(u64 b, u64 c)
{
    const double one = __longlong_as_double((long long)b);
    const double other = __longlong_as_double((long long)c);
    if (KIND == SCALE)
        return (u64)__double_as_longlong(3 * one);
    if (KIND == ADD)
        return (u64)__double_as_longlong(one + other);
    return KIND == TRIAD ? (u64)__double_as_longlong(one + 3 * other) : b;
}

// Of `size` bytes each, for ADD and TRIAD a multiple of 16. WRITE stores `word` everywhere; READ
// makes *checksum ^= the xor of all 64-bit words, the last one zero-extended.
extern "C" __global__ void __launch_bounds__(THREADS)
    arrays(ulonglong2* a, const ulonglong2* b, const ulonglong2* c, u64 size, u64 word,
           u64* checksum)
{
    const u64 units = size / 16;
    const u64 width = SPREAD ? (u64)gridDim.x * THREADS : THREADS;
    const u64 step = UNROLL * width;
    const u64 first = SPREAD ? 0 : blockIdx.x * step;
    const u64 next = SPREAD ? step : gridDim.x * step;
    const u64 lane = SPREAD ? (u64)blockIdx.x * THREADS + threadIdx.x : threadIdx.x;
    const bool two = KIND == ADD || KIND == TRIAD;
    u64 sum = 0;

    for (u64 base = first; base < units; base += next) {
        ulonglong2 x[UNROLL], y[UNROLL];
        const bool whole = base + step <= units;
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const u64 at = base + i * width + lane;
            x[i] = y[i] = make_ulonglong2(0, 0);
            if (KIND != WRITE && (whole || at < units))
                x[i] = load(b + at);
            if (two && (whole || at < units))
                y[i] = load(c + at);
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const u64 at = base + i * width + lane;
            if (KIND == READ)
                sum ^= x[i].x ^ x[i].y;
            else if (whole || at < units)
                store(a + at, KIND == WRITE ? make_ulonglong2(word, word)
                                            : make_ulonglong2(result(x[i].x, y[i].x),
                                                              result(x[i].y, y[i].y)));
        }
    }

    // The last size % 16 bytes: a number if they are so many, else one by one.
    const u64 done = units * 16;
    if (blockIdx.x == 0 && KIND == SCALE && threadIdx.x == 0 && size % 16 >= 8)
        ((u64*)a)[done / 8] = result(((const u64*)b)[done / 8], 0);
    if (blockIdx.x == 0 && KIND <= COPY && threadIdx.x < size % 16) {
        const u64 byte = done + threadIdx.x, shift = threadIdx.x % 8 * 8;
        if (KIND == READ)
            sum ^= (u64)((const unsigned char*)b)[byte] << shift;
        else
            ((unsigned char*)a)[byte] =
                KIND == WRITE ? (unsigned char)(word >> shift) : ((const unsigned char*)b)[byte];
    }

    if (KIND == READ) {
        __shared__ u64 warps[THREADS / 32];
        for (int offset = 16; offset > 0; offset /= 2)
            sum ^= __shfl_xor_sync(0xffffffff, sum, offset);
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (unsigned warp = 1; warp < THREADS / 32; ++warp)
                sum ^= warps[warp];
            if (sum != 0)
                atomicXor(checksum, sum);
        }
    }
}
