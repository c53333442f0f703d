#include "race.hpp"

#include <algorithm>
#include <barrier>
#include <stdexcept>

#include "affinity.hpp"
#include "clock.hpp"
#include "kernels.hpp"
#include "slice.hpp"

namespace linkgauge {

namespace {

struct alignas(2 * kCacheLine) Thread {
  Slice part;
  std::vector<double> begin, end;
  std::uint64_t read = 0;  // keeps the reads from being optimised away
};

void pass(const Job& job, const Kernels& kernels, std::size_t offset, Thread& thread) {
  const auto* source = reinterpret_cast<const std::byte*>(job.source) + offset;
  auto* destination = reinterpret_cast<std::byte*>(job.destination) + offset;
  const Work work{destination, source, source + job.size, thread.part.size, job.seed};
  thread.read ^= carry_out(kernels, job.op, work);
}

}  // namespace

std::vector<double> race(const Job& job, const std::vector<std::string>& kernels,
                         std::size_t window, std::size_t first, std::size_t loops) {
  if (loops < 1) throw std::invalid_argument("loops must be at least 1");
  if (window < 1 || window > job.size) throw std::invalid_argument("the window is not in the job");
  std::vector<Kernels> named;
  for (const std::string& name : kernels) named.push_back(kernels_named(job.op, name));
  const std::size_t windows = job.size / window;
  const std::size_t count = job.cpus.size();
  std::vector<Thread> threads(count);
  // Throws if one cannot be pinned: the others would wait for it at the barrier.
  run_on(job.cpus, [](std::size_t) {});
  std::barrier together(static_cast<std::ptrdiff_t>(count));
  run_on(job.cpus, [&](std::size_t index) {
    Thread& thread = threads[index];
    thread.part = slice(window, count, index, kCacheLine);
    for (std::size_t turn = 0; turn < named.size(); ++turn) {
      const auto offset = [&](std::size_t number) {
        return (first + number) % windows * window + thread.part.offset;
      };
      // Keeps write-back of the previous kernel's dirty lines out of this kernel's time.
      pass(job, named[turn], offset(2 * turn), thread);
      together.arrive_and_wait();
      thread.begin.push_back(now());
      for (std::size_t loop = 0; loop < loops; ++loop) {
        pass(job, named[turn], offset(2 * turn + 1), thread);
      }
      thread.end.push_back(now());
    }
  });
  std::vector<double> seconds;
  for (std::size_t turn = 0; turn < named.size(); ++turn) {
    double begin = threads[0].begin[turn], end = threads[0].end[turn];
    for (const Thread& thread : threads) {
      begin = std::min(begin, thread.begin[turn]);
      end = std::max(end, thread.end[turn]);
    }
    seconds.push_back(end - begin);
  }
  return seconds;
}

}  // namespace linkgauge
