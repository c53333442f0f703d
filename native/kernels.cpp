#include "kernels.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "cache.hpp"

namespace linkgauge {

static_assert(std::endian::native == std::endian::little, "words are little-endian in memory");

bool streams(std::size_t footprint, std::span<const int> cpus) {
  return footprint > last_level_cache(cpus);
}

namespace portable {

namespace {

constexpr std::size_t kWords = 8;  // independent words per iteration, for the compiler to vectorise
using Block = std::array<std::uint64_t, kWords>;

}  // namespace

std::uint64_t read(const std::byte* source, std::size_t size) {
  Block sums{};
  Block words;
  for (; size >= sizeof words; source += sizeof words, size -= sizeof words) {
    std::memcpy(&words, source, sizeof words);
    for (std::size_t i = 0; i < kWords; ++i) sums[i] ^= words[i];
  }
  words.fill(0);
  std::memcpy(&words, source, size);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kWords; ++i) sum ^= sums[i] ^ words[i];
  return sum;
}

void write(std::byte* destination, std::size_t size, std::uint64_t word) {
  Block words;
  words.fill(word);
  for (; size >= sizeof words; destination += sizeof words, size -= sizeof words) {
    std::memcpy(destination, &words, sizeof words);
  }
  std::memcpy(destination, &words, size);
}

// The C library's copy is tuned for each CPU; on many it streams large sizes by itself.
void copy(std::byte* destination, const std::byte* source, std::size_t size) {
  std::memcpy(destination, source, size);
}

}  // namespace portable

}  // namespace linkgauge
