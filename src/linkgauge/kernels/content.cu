// What collectives move, written and checked: content.cuh defines it. TYPE is the type's code.

#include "content.cuh"

using content::u64;

using T = content::Type<TYPE>::T;
using Format = content::Type<TYPE>::Format;

extern "C" __global__ void __launch_bounds__(512)
    fill(T* buffer, u64 count, content::Content of, u64 rank)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads)
        buffer[at] = Format::from(content::sent(of, rank, at));
}

// found[0] += the number of wrong elements; found[1] = min(found[1], the first of them).
extern "C" __global__ void __launch_bounds__(512)
    count_wrong(const T* buffer, u64 count, content::Content of, content::Origin origin, u64* found)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    u64 wrong = 0, first = ~0ull;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads)
        if (content::is_wrong<T, Format>(buffer[at], of, origin, at)) {
            ++wrong;
            first = at < first ? at : first;
        }
    if (wrong != 0) {
        atomicAdd(found, wrong);
        atomicMin(found + 1, first);
    }
}
