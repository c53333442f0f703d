// Pointers through memory, each of which can be read only once the one before it was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linkgauge {

// Bytes from one pointer to the next in memory: a cache line.
inline constexpr std::size_t kLink = 64;

// Links all whole lines of the range (at least one) into one cycle in an order without pattern.
void link_cycle(std::byte* start, std::size_t size, std::uint64_t seed);

// The lines of the cycle through the first line, counted by walking it; 0 if a pointer leads out
// of the range, or no cycle leads back. Writes into the lines, and restores them.
std::size_t cycle_length(std::byte* start, std::size_t size);

// Where this many hops lead.
const std::byte* follow(const std::byte* at, std::uint64_t hops);

}  // namespace linkgauge
