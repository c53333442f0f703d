// Threads on chosen CPUs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace linkgauge {

// Throws std::invalid_argument unless there is at least one CPU and none is negative.
void check_cpus(std::span<const int> cpus);

// Pins the calling thread; returns 0, or the errno of sched_setaffinity.
int pin_to(int cpu);

// Throws std::system_error naming the CPU that a thread could not be pinned to.
[[noreturn]] void fail_to_pin(int cpu, int error);

// Runs work(index) at once on one new thread for each listed CPU, pinned there, and joins them.
// Throws std::system_error if a thread cannot be started or pinned. `work` must not throw.
void run_on(std::span<const int> cpus, const std::function<void(std::size_t)>& work);

}  // namespace linkgauge
