// Prime numbers by trial division, as sysbench's cpu test searches them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "counting.hpp"

namespace linkgauge {

// One thread's share of the events.
struct PrimesThread {
  double begin;  // seconds of CLOCK_MONOTONIC
  double end;
  std::uint64_t events;
  std::uint64_t found;  // primes, in all of its events
  Counts counts;
};

// Finds the primes among 3 … `limit` - 1, `events` times in all: a thread on each of `cpus`, all
// started together, takes one event after the other until none is left. Returns what each thread
// did. Throws std::invalid_argument for no event or an impossible CPU, and std::system_error if a
// thread cannot be started or pinned.
std::vector<PrimesThread> find_primes(std::span<const int> cpus, std::uint64_t limit,
                                      std::uint64_t events);

}  // namespace linkgauge
