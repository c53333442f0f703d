#include "affinity.hpp"

#include <sched.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "error.hpp"

namespace linkgauge {

namespace {

constexpr int kMostCpus = 1 << 16;  // bounds the mask; Linux allows 8192 today

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

}  // namespace

void check_cpus(std::span<const int> cpus) {
  if (cpus.empty()) throw std::invalid_argument("cpus must name at least one CPU");
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= kMostCpus) {
      throw std::invalid_argument("no such CPU: " + std::to_string(cpu));
    }
  }
}

int pin_to(int cpu) {
  // Sized for this CPU, because a plain cpu_set_t ends at CPU 1023.
  const auto count = static_cast<std::size_t>(cpu) + 1;
  const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(count));
  if (!set) return ENOMEM;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set.get());
  CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set.get());
  return sched_setaffinity(0, bytes, set.get()) == 0 ? 0 : errno;
}

void fail_to_pin(int cpu, int error) {
  fail("sched_setaffinity to CPU " + std::to_string(cpu), error);
}

void run_on(std::span<const int> cpus, const std::function<void(std::size_t)>& work) {
  check_cpus(cpus);
  std::vector<int> errors(cpus.size(), 0);
  {
    std::vector<std::jthread> threads;
    threads.reserve(cpus.size());
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      threads.emplace_back([&, i] {
        errors[i] = pin_to(cpus[i]);
        if (errors[i] == 0) work(i);
      });
    }
  }
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (errors[i] != 0) fail_to_pin(cpus[i], errors[i]);
  }
}

}  // namespace linkgauge
