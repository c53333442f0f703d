// A plain CUDA C++ program against which linkgauge's kernels on one device and between two are
// measured: the nine tests that nvbandwidth 0.10 has and 0.8 has not. It uses the same instructions
// and the same geometry, is compiled by nvcc, and shares no code with linkgauge.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 -o device_copies bench/device_copies.cu
//     ./device_copies [MIB] [LOOPS] [SAMPLES]
//
// Prints a line for each test and place: the name of the test, its row and column, the median in
// GB/s (or ns). Checks the bytes of every copy, and exits with 1 if any is wrong.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using u64 = unsigned long long;

#define CHECK(call)                                                                              \
    do {                                                                                         \
        const cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                              \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                  \
            std::exit(2);                                                                        \
        }                                                                                        \
    } while (0)

constexpr unsigned CHUNK = 32 << 10, SLOTS = 4, AHEAD = 2;
constexpr int THREADS = 512, IN_FLIGHT = 12, READS = 8, GRID = 4, STRIDE = 128, ACCESSES = 60000;

__device__ unsigned address(const void* pointer) { return __cvta_generic_to_shared(pointer); }

__device__ void load(void* into, const char* from, unsigned bytes, u64* arrived)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(arrived)),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
                 "[%3];" ::"r"(address(into)),
                 "l"(from), "r"(bytes), "r"(address(arrived))
                 : "memory");
}

__device__ void await(u64* arrived, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(address(arrived)), "r"(parity)
                     : "memory");
}

__device__ void prepare(u64* barriers, unsigned count)
{
    for (unsigned i = 0; i < count; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(barriers + i)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\n fence.proxy.async.shared::cta;" ::: "memory");
}

// Sizes are multiples of CHUNK.
__global__ void bulk_copy(char* to, const char* from, u64 size, u64 loops)
{
    extern __shared__ __align__(128) char slots[];
    __shared__ u64 barriers[SLOTS];
    if (threadIdx.x != 0)
        return;
    prepare(barriers, SLOTS);
    const u64 chunks = size / CHUNK, all = chunks * loops;
    u64 asked = 0;
    for (u64 chunk = blockIdx.x, stored = 0; chunk < all; chunk += gridDim.x, ++stored) {
        for (; asked < stored + AHEAD; ++asked) {
            const u64 next = blockIdx.x + asked * gridDim.x;
            if (next >= all)
                break;
            asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(SLOTS - AHEAD) : "memory");
            load(slots + asked % SLOTS * CHUNK, from + next % chunks * CHUNK, CHUNK,
                 barriers + asked % SLOTS);
        }
        await(barriers + stored % SLOTS, stored / SLOTS & 1);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                     "cp.async.bulk.commit_group;" ::"l"(to + chunk % chunks * CHUNK),
                     "r"(address(slots + stored % SLOTS * CHUNK)), "r"(CHUNK)
                     : "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(THREADS) copy(uint4* to, const uint4* from, u64 size, u64 loops)
{
    const u64 units = size / 16, tile = THREADS * IN_FLIGHT, tiles = (units + tile - 1) / tile;
    for (u64 at = blockIdx.x; at < tiles * loops; at += gridDim.x) {
        const u64 base = at % tiles * tile + threadIdx.x;
        uint4 value[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i)
            if (base + i * THREADS < units)
                value[i] = from[base + i * THREADS];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i)
            if (base + i * THREADS < units)
                to[base + i * THREADS] = value[i];
    }
}

__global__ void __launch_bounds__(THREADS) read(const ulonglong2* from, u64 size, u64 loops, u64* sum)
{
    const u64 units = size / 16, threads = (u64)gridDim.x * THREADS;
    u64 own = 0;
    for (u64 loop = 0; loop < loops; ++loop) {
        own = 0;
        for (u64 at = (u64)blockIdx.x * THREADS + threadIdx.x; at < units; at += READS * threads) {
            ulonglong2 value[READS];
#pragma unroll
            for (int i = 0; i < READS; ++i)
                if (at + i * threads < units)
                    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
                                 : "=l"(value[i].x), "=l"(value[i].y)
                                 : "l"(from + at + i * threads));
                else
                    value[i] = make_ulonglong2(0, 0);
#pragma unroll
            for (int i = 0; i < READS; ++i)
                own ^= value[i].x ^ value[i].y;
        }
    }
    for (int lanes = 16; lanes > 0; lanes /= 2)
        own ^= __shfl_xor_sync(0xffffffff, own, lanes);
    if (threadIdx.x % 32 == 0 && own)
        atomicXor(sum, own);
}

__global__ void __launch_bounds__(THREADS) write(ulonglong2* to, u64 size, u64 loops, u64 word)
{
    const u64 units = size / 16, threads = (u64)gridDim.x * THREADS;
    for (u64 loop = 0; loop < loops; ++loop)
        for (u64 at = (u64)blockIdx.x * THREADS + threadIdx.x; at < units; at += threads)
            asm volatile("st.global.v2.u64 [%0], {%1, %1};" ::"l"(to + at), "l"(word) : "memory");
}

__global__ void fill(u64* to, u64 words, u64 seed)
{
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (u64)gridDim.x * blockDim.x)
        to[i] = (i + seed) * 0x9E3779B97F4A7C15;
}

__global__ void compare(const u64* found, u64 words, u64 seed, u64* wrong)
{
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (u64)gridDim.x * blockDim.x)
        if (found[i] != (i + seed) * 0x9E3779B97F4A7C15)
            atomicAdd(wrong, 1);
}

__global__ void link(char* ring, unsigned count)
{
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        *(char**)(ring + i * STRIDE) = ring + (i + 1) % count * STRIDE;
}

__global__ void chase(const char* at, unsigned accesses, unsigned chaser)
{
    __shared__ __align__(16) const char* node[2];
    __shared__ u64 barrier;
    if (blockIdx.x != chaser)
        return;
    prepare(&barrier, 1);
    for (unsigned i = 0; i < accesses; ++i) {
        load(node, at, sizeof node, &barrier);
        await(&barrier, i & 1);
        at = *(const char* volatile*)node;
    }
    if (!at)
        __trap();
}

struct Device {
    int index, processors;
    cudaStream_t stream;
    char *source, *destination;
    u64* word;
};
static u64 size, wrong_bytes;
static int loops, samples;
static std::vector<Device> devices;

static void use(const Device& device) { CHECK(cudaSetDevice(device.index)); }

static u64 take(const Device& device)
{
    u64 value;
    use(device);
    CHECK(cudaStreamSynchronize(device.stream));
    CHECK(cudaMemcpy(&value, device.word, 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(device.word, 0, 8));
    return value;
}

static void put(const Device& device, char* at, u64 seed)
{
    use(device);
    fill<<<device.processors, 512, 0, device.stream>>>((u64*)at, size / 8, seed);
    CHECK(cudaStreamSynchronize(device.stream));
}

static void expect(const Device& device, const char* at, u64 seed)
{
    use(device);
    compare<<<device.processors, 512, 0, device.stream>>>((const u64*)at, size / 8, seed, device.word);
    wrong_bytes += take(device);
}

// The median seconds of `work` on each of the devices, all of which start at the same time.
static double timed(const std::vector<const Device*>& by,
                    const std::function<void(const Device&, int)>& work, std::vector<double>* each)
{
    std::vector<std::vector<double>> found(by.size());
    for (int sample = 0; sample < samples; ++sample) {
        std::vector<cudaEvent_t> start(by.size()), end(by.size());
        for (size_t i = 0; i < by.size(); ++i) {
            use(*by[i]);
            CHECK(cudaEventCreate(&start[i]));
            CHECK(cudaEventCreate(&end[i]));
            work(*by[i], 1);
            CHECK(cudaStreamSynchronize(by[i]->stream));
        }
        for (size_t i = 0; i < by.size(); ++i) {
            use(*by[i]);
            CHECK(cudaEventRecord(start[i], by[i]->stream));
            work(*by[i], loops);
            CHECK(cudaEventRecord(end[i], by[i]->stream));
        }
        for (size_t i = 0; i < by.size(); ++i) {
            float milliseconds;
            CHECK(cudaEventSynchronize(end[i]));
            CHECK(cudaEventElapsedTime(&milliseconds, start[i], end[i]));
            found[i].push_back(milliseconds / 1e3);
        }
    }
    for (auto& own : found) {
        std::sort(own.begin(), own.end());
        each->push_back(own[own.size() / 2]);
    }
    return each->front();
}

static void print(const char* name, int row, int column, double figure)
{
    std::printf("%s %d %d %.2f\n", name, row, column, figure);
}

static double rate(double seconds) { return size * (double)loops / seconds / 1e9; }

static void bulk(const Device& by, char* to, const char* from, int times)
{
    use(by);
    CHECK(cudaFuncSetAttribute(bulk_copy, cudaFuncAttributeMaxDynamicSharedMemorySize, CHUNK * SLOTS));
    bulk_copy<<<by.processors, 32, CHUNK * SLOTS, by.stream>>>(to, from, size, times);
}

static void within(const Device& device)
{
    std::vector<double> time;
    put(device, device.source, 1);
    auto copied = [&](const char* name, const std::function<void(const Device&, int)>& work) {
        put(device, device.destination, 99);
        time.clear();
        timed({&device}, work, &time);
        expect(device, device.destination, 1);
        print(name, 0, device.index, rate(time[0]));
    };
    copied("device_local_copy_sm", [](const Device& by, int times) {
        copy<<<by.processors, THREADS, 0, by.stream>>>((uint4*)by.destination,
                                                      (const uint4*)by.source, size, times);
    });
    copied("device_local_copy_tma",
           [](const Device& by, int times) { bulk(by, by.destination, by.source, times); });
    time.clear();
    timed({&device},
          [](const Device& by, int times) {
              read<<<GRID * by.processors, THREADS, 0, by.stream>>>((const ulonglong2*)by.source, size,
                                                                   times, by.word);
          },
          &time);
    take(device);
    print("device_local_read_sm", 0, device.index, rate(time[0]));
    time.clear();
    timed({&device},
          [](const Device& by, int times) {
              write<<<GRID * by.processors, THREADS, 0, by.stream>>>((ulonglong2*)by.destination, size,
                                                                    times, 7);
          },
          &time);
    print("device_local_write_sm", 0, device.index, rate(time[0]));
}

static void between(const Device& row, const Device& column)
{
    std::vector<double> time;
    for (const Device* each : {&row, &column}) {
        put(*each, each->source, 10 + each->index);
        put(*each, each->destination, 99);
    }
    timed({&row}, [&](const Device& by, int n) { bulk(by, by.destination, column.source, n); }, &time);
    expect(row, row.destination, 10 + column.index);
    print("device_to_device_memcpy_read_tma", row.index, column.index, rate(time[0]));
    time.clear();
    timed({&row}, [&](const Device& by, int n) { bulk(by, column.destination, by.source, n); }, &time);
    expect(column, column.destination, 10 + row.index);
    print("device_to_device_memcpy_write_tma", row.index, column.index, rate(time[0]));
    auto other = [&](const Device& by) -> const Device& { return &by == &row ? column : row; };
    for (const bool reads : {true, false}) {
        put(row, row.destination, 99);
        put(column, column.destination, 99);
        time.clear();
        timed({&row, &column},
              [&](const Device& by, int n) {
                  reads ? bulk(by, by.destination, other(by).source, n)
                        : bulk(by, other(by).destination, by.source, n);
              },
              &time);
        expect(row, row.destination, 10 + column.index);
        expect(column, column.destination, 10 + row.index);
        print(reads ? "device_to_device_bidirectional_memcpy_read_tma_total"
                    : "device_to_device_bidirectional_memcpy_write_tma_total",
              row.index, column.index, rate(time[0]) + rate(time[1]));
    }
    const unsigned count = (2 << 20) / STRIDE, each = ACCESSES / row.processors;
    use(column);
    link<<<1, 512, 0, column.stream>>>(column.source, count);
    CHECK(cudaStreamSynchronize(column.stream));
    time.clear();
    timed({&row},
          [&](const Device& by, int) {
              use(by);
              for (int block = 0; block < by.processors; ++block)
                  chase<<<by.processors, 1, 0, by.stream>>>(
                      column.source + (u64)block * each % count * STRIDE, each, block);
          },
          &time);
    print("device_to_device_latency_tma", row.index, column.index, time[0] * 1e9 / each / row.processors);
}

int main(int count, char** words)
{
    size = (u64)(count > 1 ? std::atoi(words[1]) : 512) << 20;
    loops = count > 2 ? std::atoi(words[2]) : 16;
    samples = count > 3 ? std::atoi(words[3]) : 3;
    int known;
    CHECK(cudaGetDeviceCount(&known));
    for (int index = 0; index < known; ++index) {
        Device device{index};
        use(device);
        CHECK(cudaDeviceGetAttribute(&device.processors, cudaDevAttrMultiProcessorCount, index));
        CHECK(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&device.source, size));
        CHECK(cudaMalloc(&device.destination, size));
        CHECK(cudaMalloc(&device.word, 8));
        CHECK(cudaMemset(device.word, 0, 8));
        for (int peer = 0; peer < known; ++peer)
            if (peer != index)
                CHECK(cudaDeviceEnablePeerAccess(peer, 0));
        devices.push_back(device);
    }
    for (const Device& device : devices)
        within(device);
    for (const Device& row : devices)
        for (const Device& column : devices)
            if (&row != &column)
                between(row, column);
    CHECK(cudaGetLastError());
    if (wrong_bytes)
        std::printf("WRONG: %llu words\n", wrong_bytes);
    return wrong_bytes != 0;
}
