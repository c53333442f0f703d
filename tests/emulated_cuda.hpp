// CUDA C++ on a CPU, as far as linkgauge's kernels need it: the threads of a block one after another,
// or, of kernels that exchange values, side by side.
#pragma once

#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __trap abort

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

inline thread_local dim3 threadIdx{}, blockIdx{}, blockDim{}, gridDim{};

// Nanoseconds, and ticks of half a nanosecond.
inline unsigned long long emulated_nanoseconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
inline long long clock64() { return 2 * emulated_nanoseconds(); }

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
template <class T> T __ldcg(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
template <class T> void __stcg(T* to, T value) { *to = value; }
inline float half_to_float(unsigned short bits)
{
    return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline unsigned short float_to_half(float value)
{
    return std::bit_cast<unsigned short>(static_cast<_Float16>(value));
}

// The bulk copy unit (bulk.cuh). A load arrives at once: its barrier counts the loads, and a wait for
// another one than the last would never end.
using Shared = char*;
inline Shared shared_address(const void* pointer) { return (Shared)pointer; }
inline void begin_barrier(Shared barrier) { *(u64_*)barrier = 0; }
inline void begin_bulk_copies() {}
inline void bulk_move(char* to, const char* from, unsigned bytes)
{
    if (((std::uintptr_t)to | (std::uintptr_t)from | bytes) % 16)
        abort();
    std::memcpy(to, from, bytes);
}
inline void load_chunk(Shared stage, const char* from, unsigned bytes, Shared barrier)
{
    bulk_move(stage, from, bytes);
    ++*(u64_*)barrier;
}
inline void store_chunk(char* to, Shared stage, unsigned bytes) { bulk_move(to, stage, bytes); }
inline bool has_arrived(Shared barrier, unsigned parity)
{
    if (*(u64_*)barrier % 2 == parity)
        abort();
    return true;
}
inline void wait_for(Shared barrier, unsigned parity) { has_arrived(barrier, parity); }
template <int PENDING> void await_reads() {}
inline void await_stores() {}

// The threads of a block that exchange values: each runs to its next barrier, then comes the next one.
struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 15);
    bool done = false;
};
inline ucontext_t scheduler;
inline std::vector<Fiber> fibers;
inline thread_local std::function<void()> work;
inline std::vector<u64_> exchanged;

inline void __syncthreads() { swapcontext(&fibers[threadIdx.x].context, &scheduler); }
inline int __syncthreads_or(int own)
{
    static int any;
    if (own)
        any = 1;
    __syncthreads();
    const int all = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return all;
}
// The whole block exchanges at once: all of its threads come by.
inline u64_ __shfl_xor_sync(unsigned, u64_ value, int mask)
{
    exchanged[threadIdx.x] = value;
    __syncthreads();
    const u64_ other = exchanged[threadIdx.x ^ static_cast<unsigned>(mask)];
    __syncthreads();
    return other;
}
inline void enter_fiber()
{
    work();
    fibers[threadIdx.x].done = true;
}
inline void run_block(unsigned threads)
{
    if (fibers.size() < threads) fibers = std::vector<Fiber>(threads);
    exchanged.assign(threads, 0);
    for (unsigned thread = 0; thread < threads; ++thread) {
        Fiber& fiber = fibers[thread];
        fiber.done = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, enter_fiber, 0);
    }
    for (bool all = false; !all;) {
        all = true;
        for (unsigned thread = 0; thread < threads; ++thread) {
            threadIdx = {thread, 0, 0};
            if (!fibers[thread].done) swapcontext(&scheduler, &fibers[thread].context);
            all = all && fibers[thread].done;
        }
    }
}

template <class... Arguments, std::size_t... Places>
void call(void (*kernel)(Arguments...), void** parameters, std::index_sequence<Places...>)
{
    kernel(*static_cast<std::decay_t<Arguments>*>(parameters[Places])...);
}

template <class... Arguments>
void emulate(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, void** parameters,
             bool exchanges)
{
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    work = [&] { call(kernel, parameters, std::index_sequence_for<Arguments...>{}); };
    for (unsigned block = 0; block < blocks; ++block) {
        blockIdx = {block, 0, 0};
        if (exchanges) {
            run_block(threads);
            continue;
        }
        for (unsigned thread = 0; thread < threads; ++thread) {
            threadIdx = {thread, 0, 0};
            work();
        }
    }
}
