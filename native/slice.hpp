// Divides a range of bytes among threads.
#pragma once

#include <algorithm>
#include <cstddef>

namespace linkgauge {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Slice {
  std::size_t offset;
  std::size_t size;
};

constexpr std::size_t round_up(std::size_t size, std::size_t granule) {
  return (size + granule - 1) / granule * granule;
}

// The share of part `index` out of `parts`: contiguous, its offset a multiple of `granule`, the
// shares differing by at most one granule. Empty where there are more parts than granules.
constexpr Slice slice(std::size_t size, std::size_t parts, std::size_t index, std::size_t granule) {
  const std::size_t granules = size / granule + (size % granule != 0);
  const std::size_t each = granules / parts;
  const std::size_t longer = granules % parts;
  const std::size_t first = index * each + std::min(index, longer);
  const std::size_t count = each + (index < longer);
  const std::size_t begin = std::min(size, first * granule);
  return {begin, std::min(size - begin, count * granule)};
}

}  // namespace linkgauge
