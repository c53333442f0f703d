// The loops that move bytes: what a host benchmark times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace linkgauge {

// Each handles any size and any alignment, and touches no byte outside its ranges.
struct Kernels {
  // Xor of all 64-bit words from `source` on, a shorter tail zero-extended.
  std::uint64_t (*read)(const std::byte* source, std::size_t size);
  // Stores `word` again and again from `destination` on, the tail its low bytes.
  void (*write)(std::byte* destination, std::size_t size, std::uint64_t word);
  void (*copy)(std::byte* destination, const std::byte* source, std::size_t size);
};

// Whether stores should pass the caches by: when the bytes that a job touches (`footprint`: a
// copy's source and destination both) are more than the last-level caches behind its `cpus` can
// hold. Below that, lines stay cached from one loop to the next and ordinary stores are faster;
// above, an ordinary store first reads the line that it is about to overwrite, a third more
// traffic.
bool streams(std::size_t footprint, std::span<const int> cpus);

// The fastest kernels that this CPU runs. `streaming` asks for stores that pass the caches by.
Kernels kernels_for(bool streaming);

namespace portable {
std::uint64_t read(const std::byte* source, std::size_t size);
void write(std::byte* destination, std::size_t size, std::uint64_t word);
void copy(std::byte* destination, const std::byte* source, std::size_t size);
}  // namespace portable

#if defined(__x86_64__)
namespace avx2 {
std::uint64_t read(const std::byte* source, std::size_t size);
void write(std::byte* destination, std::size_t size, std::uint64_t word);
void stream_write(std::byte* destination, std::size_t size, std::uint64_t word);
void stream_copy(std::byte* destination, const std::byte* source, std::size_t size);
}  // namespace avx2
#endif

}  // namespace linkgauge
