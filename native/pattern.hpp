// Known contents, which verify a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace linkgauge {

enum class Pattern { Words, Constant, Split, Numbers, Scaled, Added, Triad };

// Word i of `seed`, before any complement:
//   x = (i + seed * 0xD1B54A32D192ED03) * 0x9E3779B97F4A7C15;  x ^= x >> 29   (mod 2^64)
// Words identifies every word's index, Constant repeats word 0, and Split is Words in odd 512-byte
// chunks and its complement in even ones, which distinguishes two kernels' halves of one buffer.
//
// Numbers are of 64-bit floating point, 1 + (x >> 16) / 2^48: from 1 to 2, with so few digits that
// their sums and triples are exact. The last three are what STREAM's operations make of an array b
// of them, or of b and the array c that follows it in one buffer: 3 b, b + c and b + 3 c.
std::uint64_t word_of(std::uint64_t seed, std::uint64_t index);

// What `fill` would write, made by the calling thread. For a few pages: a thread of its own takes
// longer to start.
std::vector<std::byte> pattern_bytes(std::size_t size, std::uint64_t seed, Pattern pattern);

// Each works on slices of the range in parallel, one thread pinned to each of `cpus`.

// `inverted` stores the complement: a poison in which every byte is wrong.
void fill(std::byte* address, std::size_t size, std::uint64_t seed, Pattern pattern, bool inverted,
          std::span<const int> cpus);

// Offset of the first byte that differs from the pattern.
std::optional<std::size_t> first_mismatch(const std::byte* address, std::size_t size,
                                          std::uint64_t seed, Pattern pattern,
                                          std::span<const int> cpus);

// Xor of all 64-bit words, the tail zero-extended.
std::uint64_t checksum(const std::byte* address, std::size_t size, std::span<const int> cpus);

}  // namespace linkgauge
