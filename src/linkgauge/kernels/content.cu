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

// *wrong += the number of wrong elements; *first = min(*first, the first of them).
extern "C" __global__ void __launch_bounds__(512)
    count_wrong(const T* buffer, u64 count, content::Content of, content::Origin origin, u64* wrong,
                u64* first)
{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    u64 count_here = 0, found = ~0ull;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads)
        if (content::is_wrong<T, Format>(buffer[at], of, origin, at)) {
            ++count_here;
            found = at < found ? at : found;
        }
    if (count_here != 0) {
        atomicAdd(wrong, count_here);
        atomicMin(first, found);
    }
}
