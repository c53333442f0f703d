// CUDA C++ on a CPU, as far as linkgauge's kernels need it: the threads of a block one after another,
// or, of kernels that exchange values (EXCHANGES), side by side.
#pragma once

#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)

struct dim3 { unsigned x, y, z; };
struct float2 { float x, y; };
struct double2 { double x, y; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct ulonglong2 { unsigned long long x, y; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

inline thread_local dim3 threadIdx{};
inline thread_local dim3 blockIdx{};
inline dim3 blockDim{}, gridDim{};

using u64_ = unsigned long long;
inline u64_ atomicMin(u64_* at, u64_ value)
{
    u64_ old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < old && !__atomic_compare_exchange_n(at, &old, value, true, 5, 5)) {
    }
    return old;
}
inline u64_ atomicXor(u64_* at, u64_ value) { return __atomic_fetch_xor(at, value, 5); }
inline u64_ atomicAdd(u64_* at, u64_ value) { return __atomic_fetch_add(at, value, 5); }

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline int __ffsll(u64_ value) { return __builtin_ffsll(static_cast<long long>(value)); }
inline void sincospif(float x, float* sine, float* cosine)
{
    *sine = std::sin(static_cast<float>(M_PI) * x);
    *cosine = std::cos(static_cast<float>(M_PI) * x);
}
using std::min;
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
inline float half_to_float(unsigned short bits)
{
    return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline unsigned short float_to_half(float value)
{
    return std::bit_cast<unsigned short>(static_cast<_Float16>(value));
}

inline std::unique_ptr<std::barrier<>> block_barrier;
inline std::vector<u64_> exchanged;
inline void __syncthreads() { block_barrier->arrive_and_wait(); }
// The whole block exchanges at once: all of its threads come by.
inline u64_ __shfl_xor_sync(unsigned, u64_ value, int mask)
{
    exchanged[threadIdx.x] = value;
    __syncthreads();
    const u64_ other = exchanged[threadIdx.x ^ static_cast<unsigned>(mask)];
    __syncthreads();
    return other;
}

template <class... Arguments, std::size_t... Places>
void call(void (*kernel)(Arguments...), void** parameters, std::index_sequence<Places...>)
{
    kernel(*static_cast<std::decay_t<Arguments>*>(parameters[Places])...);
}

template <class... Arguments>
void emulate(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, void** parameters)
{
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    const auto one = [&](unsigned block, unsigned thread) {
        blockIdx = {block, 0, 0};
        threadIdx = {thread, 0, 0};
        call(kernel, parameters, std::index_sequence_for<Arguments...>{});
    };
    for (unsigned block = 0; block < blocks; ++block) {
#ifdef EXCHANGES
        block_barrier = std::make_unique<std::barrier<>>(threads);
        exchanged.assign(threads, 0);
        std::vector<std::jthread> team;
        for (unsigned thread = 0; thread < threads; ++thread) team.emplace_back(one, block, thread);
#else
        for (unsigned thread = 0; thread < threads; ++thread) one(block, thread);
#endif
    }
}
