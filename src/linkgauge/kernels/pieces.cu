// Copies in pieces of PIECE bytes: block b carries out pieces b, b + grid, b + 2 grid, …, one after
// another, as so many streams of small transfers side by side. Compiled for each variant:
//   PIECE    bytes of a piece, a multiple of 16
//   PAYLOAD  bytes of one access of a warp: 128, 256 or 512

typedef unsigned long long u64;

#if PAYLOAD == 128
typedef unsigned Element;
#elif PAYLOAD == 256
typedef uint2 Element;
#else
typedef uint4 Element;
#endif

extern "C" __global__ void copy(Element* destination, const Element* source, u64 size, u64 loops)
{
    const u64 each = PIECE / sizeof(Element);
    const u64 elements = size / sizeof(Element);
    const u64 pieces = (elements + each - 1) / each;
    for (u64 piece = blockIdx.x; piece < pieces * loops; piece += gridDim.x) {
        const u64 begin = piece % pieces * each;
        const u64 end = begin + each < elements ? begin + each : elements;
        // Never from a cache: somebody else may have written since the last loop.
        for (u64 at = begin + threadIdx.x; at < end; at += blockDim.x)
            __stwt(destination + at, __ldcv(source + at));
        __syncthreads();
    }

    // The last bytes, by as many threads.
    if (blockIdx.x == 0 && threadIdx.x < size % sizeof(Element)) {
        const u64 byte = elements * sizeof(Element) + threadIdx.x;
        for (u64 loop = 0; loop < loops; ++loop)
            ((volatile char*)destination)[byte] = ((const volatile char*)source)[byte];
    }
}
