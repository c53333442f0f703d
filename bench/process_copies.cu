// Copies both ways between two GPUs by their copy engines, from two threads of one process and from
// two processes that share memory by CUDA IPC. Prints the sum of both rates in GB/s, a line a turn.
//   nvcc -O2 -std=c++17 -o process_copies process_copies.cu && ./process_copies [TURNS]
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

constexpr size_t kBytes = 512u << 20;
constexpr int kLoops = 60;
struct Shared {
  cudaIpcMemHandle_t handles[2];
  std::atomic<char*> pointers[2];
  std::atomic<int> met[4];
  double rates[2];
};
void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error)), _exit(1);
}
void meet(Shared* shared, int which) {
  for (++shared->met[which]; shared->met[which] < 2;) {
  }
}
void copy_on(Shared* shared, int side, bool reads, bool processes) {
  check(cudaSetDevice(side));
  char *own, *other;
  check(cudaMalloc(&own, kBytes));
  if (processes) check(cudaIpcGetMemHandle(&shared->handles[side], own));
  shared->pointers[side] = own;
  meet(shared, 0);
  if (processes) {
    auto flags = cudaIpcMemLazyEnablePeerAccess;
    check(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&other), shared->handles[1 - side], flags));
  } else {
    check(cudaDeviceEnablePeerAccess(1 - side, 0));
    other = shared->pointers[1 - side];
  }
  cudaStream_t stream;
  cudaEvent_t begin, end;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaEventCreate(&begin)), check(cudaEventCreate(&end));
  auto copy = [&] {
    auto to = reads ? own : other, from = reads ? other : own;
    check(cudaMemcpyAsync(to, from, kBytes / 2, cudaMemcpyDefault, stream));
  };
  for (int n = 0; n < 4; ++n) copy();
  check(cudaStreamSynchronize(stream));
  meet(shared, 1);
  check(cudaEventRecord(begin, stream));
  for (int n = 0; n < kLoops; ++n) copy();
  check(cudaEventRecord(end, stream));
  check(cudaStreamSynchronize(stream));
  float milliseconds;
  check(cudaEventElapsedTime(&milliseconds, begin, end));
  shared->rates[side] = kLoops * (kBytes / 2) / (milliseconds * 1e6);
  meet(shared, 2);
}
double sum_of(bool reads, bool processes) {
  auto flags = MAP_SHARED | MAP_ANONYMOUS;
  auto memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, flags, -1, 0);
  auto shared = new (memory) Shared{};
  for (int side = 0, last = processes ? 2 : 1; side < last; ++side) {
    if (fork() != 0) continue;
    std::thread second;
    if (!processes) second = std::thread(copy_on, shared, 1, reads, false);
    copy_on(shared, side, reads, processes);
    if (second.joinable()) second.join();
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  return shared->rates[0] + shared->rates[1];
}
int main(int count, char** words) {
  for (int turn = 0, turns = count > 1 ? std::atoi(words[1]) : 5; turn < turns; ++turn) {
    std::printf("turn %d: read, 1 process %.1f, 2 processes %.1f; write, 1 process %.1f, 2 processes %.1f\n",
                turn + 1, sum_of(true, false), sum_of(true, true), sum_of(false, false), sum_of(false, true));
    std::fflush(stdout);
  }
}
