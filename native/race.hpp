// Kernels that take turns over the same memory: which is the fastest?
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "team.hpp"

namespace linkgauge {

// Runs each of `kernels`, in this order, by all of the job's threads: once over the next `window`
// bytes of its memory, then, timed, `loops` times over those after them. The first window is number
// `first`, and after the last one comes the first again. Returns the seconds of each, from its
// first thread's begin to its last thread's end. Throws std::invalid_argument for a kernel that
// there is not, a window that is not in the memory, or no loops, and std::system_error if a thread
// cannot be started or pinned.
std::vector<double> race(const Job& job, const std::vector<std::string>& kernels,
                         std::size_t window, std::size_t first, std::size_t loops);

}  // namespace linkgauge
