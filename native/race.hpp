// Times kernels that take turns on the same memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "team.hpp"

namespace linkgauge {

// Runs each of `kernels`, in this order, with all of the job's threads: once over the next `window`
// bytes of its memory, then, timed, `loops` times over the bytes that follow. The first window is
// number `first`; after the last one they wrap around. Returns the seconds of each kernel, from its
// first thread's start to its last thread's end. Throws std::invalid_argument for an unknown
// kernel, a window outside the memory, or no loops, and std::system_error if a thread cannot be
// started or pinned.
std::vector<double> race(const Job& job, const std::vector<std::string>& kernels,
                         std::size_t window, std::size_t first, std::size_t loops);

}  // namespace linkgauge
