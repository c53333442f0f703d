// What the data of collectives hold (kernels/content.cuh), in the memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "content.cuh"

namespace linkgauge {

struct Wrong {
  std::uint64_t count = 0;
  std::uint64_t first = 0;  // where count is not 0
};

// Both work on slices of the range in parallel, one thread pinned to each of `cpus`. `type` is the
// code of the elements' type. Throw std::invalid_argument for an unknown one.

// What `rank` sends: `count` elements.
void fill_content(std::byte* address, std::size_t count, int type, const content::Content& of,
                  std::uint64_t rank, std::span<const int> cpus);

// How many of `count` elements are not what has to arrive, and which is the first.
Wrong count_wrong(const std::byte* address, std::size_t count, int type, const content::Content& of,
                  const content::Origin& origin, std::span<const int> cpus);

}  // namespace linkgauge
