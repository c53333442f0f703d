// Latency of a cache line that two CPUs pass back and forth.
#pragma once

#include <cstdint>
#include <vector>

#include "counting.hpp"

namespace linkgauge {

struct PingPong {
  std::vector<double> times;  // seconds of CLOCK_MONOTONIC: begin, and the end of each batch
  std::uint64_t bounces;      // how often the line changed owner, by its count
  Counts counts;              // of both threads, of all batches
};

// A thread on CPU `first` and one on `second` take turns to count up a word that lies alone in its
// cache line, `batches` batches of `loops` round trips; the first thread reads the clock between
// batches. Some round trips before that bring both CPUs up to speed. The line's page is touched by
// `first` first. Throws std::invalid_argument for equal CPUs, an impossible one, or no loops or
// batches, and std::system_error if a thread cannot be started or pinned.
PingPong ping_pong(int first, int second, std::uint64_t loops, std::uint64_t batches);

}  // namespace linkgauge
