#include "pattern.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "affinity.hpp"
#include "kernels.hpp"
#include "slice.hpp"

namespace linkgauge {

namespace {

constexpr std::uint64_t kSeedStep = 0xD1B54A32D192ED03;
constexpr std::uint64_t kWordStep = 0x9E3779B97F4A7C15;
constexpr std::size_t kChunk = 512;
constexpr std::size_t kChunkWords = kChunk / sizeof(std::uint64_t);
constexpr std::size_t kBlock = 8 * kChunk;  // generated at once; stays in the first-level cache
constexpr std::size_t kBlockWords = kBlock / sizeof(std::uint64_t);

constexpr std::uint64_t mix(std::uint64_t x) { return x ^ (x >> 29); }

// The number of a word.
double number(std::uint64_t x) {
  constexpr std::uint64_t kOne = 0x3FF0000000000000;
  return std::bit_cast<double>(kOne | (x >> 16) << 4);
}

// i * kWordStep: turns the multiplication into an addition, which every vector unit has.
constexpr auto kSteps = [] {
  std::array<std::uint64_t, kChunkWords> steps{};
  for (std::size_t i = 0; i < kChunkWords; ++i) steps[i] = i * kWordStep;
  return steps;
}();

// The expected contents, block by block.
class Contents {
 public:
  // `size` is that of the whole array in bytes.
  Contents(std::uint64_t seed, Pattern pattern, bool inverted, std::size_t size)
      : seed_(seed),
        pattern_(pattern),
        flip_(inverted ? ~std::uint64_t{0} : 0),
        count_(size / sizeof(std::uint64_t)) {
    block_.fill(word_of(seed, 0) ^ flip_);
  }

  // The block that begins at byte `offset`, a multiple of kBlock.
  const std::byte* at(std::size_t offset) {
    if (pattern_ != Pattern::Constant) {
      for (std::size_t chunk = 0; chunk < kBlock; chunk += kChunk) make_chunk(offset, chunk);
    }
    return reinterpret_cast<const std::byte*>(block_.data());
  }

 private:
  void make_chunk(std::size_t offset, std::size_t chunk) {
    const bool even = chunk / kChunk % 2 == 0;
    const std::uint64_t flip = pattern_ == Pattern::Split && even ? ~flip_ : flip_;
    const std::size_t first = (offset + chunk) / sizeof(std::uint64_t);
    const std::uint64_t base = (first + seed_ * kSeedStep) * kWordStep;
    // The first step of the array that follows this one.
    const std::uint64_t next = base + count_ * kWordStep;
    std::uint64_t* words = block_.data() + chunk / sizeof(std::uint64_t);
    const auto b = [&](std::size_t i) { return number(mix(base + kSteps[i])); };
    const auto c = [&](std::size_t i) { return number(mix(next + kSteps[i])); };
    const auto store = [&](auto value_at) {
      for (std::size_t i = 0; i < kChunkWords; ++i) {
        words[i] = std::bit_cast<std::uint64_t>(value_at(i)) ^ flip;
      }
    };
    switch (pattern_) {
      case Pattern::Numbers:
        return store(b);
      case Pattern::Scaled:
        return store([&](std::size_t i) { return kScalar * b(i); });
      case Pattern::Added:
        return store([&](std::size_t i) { return b(i) + c(i); });
      case Pattern::Triad:
        return store([&](std::size_t i) { return b(i) + kScalar * c(i); });
      default:
        return store([&](std::size_t i) { return mix(base + kSteps[i]); });
    }
  }

  std::uint64_t seed_;
  Pattern pattern_;
  std::uint64_t flip_;
  std::uint64_t count_;  // words of the whole array
  alignas(kCacheLine) std::array<std::uint64_t, kBlockWords> block_;
};

void fill_slice(std::byte* address, Slice part, Contents& contents, const Kernels& kernels) {
  const std::size_t end = part.offset + part.size;
  for (std::size_t offset = part.offset; offset < end; offset += kBlock) {
    kernels.copy(address + offset, contents.at(offset), std::min(kBlock, end - offset));
  }
}

// Prefetches a block into the caches; harmless beyond the end of the memory.
void prefetch(const std::byte* block) {
  for (std::size_t line = 0; line < kBlock; line += kCacheLine) __builtin_prefetch(block + line);
}

std::optional<std::size_t> mismatch_in(const std::byte* address, Slice part, Contents& contents) {
  const std::size_t end = part.offset + part.size;
  for (std::size_t offset = part.offset; offset < end; offset += kBlock) {
    const std::size_t size = std::min(kBlock, end - offset);
    const std::byte* found = address + offset;
    prefetch(found + kBlock);  // loads while this block's contents are generated
    const std::byte* expected = contents.at(offset);
    if (std::memcmp(found, expected, size) == 0) continue;
    return offset +
           static_cast<std::size_t>(std::mismatch(found, found + size, expected).first - found);
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t word_of(std::uint64_t seed, std::uint64_t index) {
  return mix((index + seed * kSeedStep) * kWordStep);
}

void fill(std::byte* address, std::size_t size, std::uint64_t seed, Pattern pattern, bool inverted,
          std::span<const int> cpus) {
  const Kernels kernels = kernels_for(streams(size, cpus));
  run_on(cpus, [&](std::size_t i) {
    const Slice part = slice(size, cpus.size(), i, kBlock);
    Contents contents(seed, pattern, inverted, size);
    fill_slice(address, part, contents, kernels);
  });
}

std::vector<std::byte> pattern_bytes(std::size_t size, std::uint64_t seed, Pattern pattern) {
  std::vector<std::byte> made(size);
  Contents expected(seed, pattern, false, size);
  fill_slice(made.data(), {0, size}, expected, kernels_for(false));
  return made;
}

std::optional<std::size_t> first_mismatch(const std::byte* address, std::size_t size,
                                          std::uint64_t seed, Pattern pattern,
                                          std::span<const int> cpus) {
  std::vector<std::optional<std::size_t>> found(cpus.size());
  run_on(cpus, [&](std::size_t i) {
    Contents contents(seed, pattern, false, size);
    found[i] = mismatch_in(address, slice(size, cpus.size(), i, kBlock), contents);
  });
  const auto first = std::ranges::find_if(found, [](const auto& offset) { return !!offset; });
  return first == found.end() ? std::nullopt : *first;
}

std::uint64_t checksum(const std::byte* address, std::size_t size, std::span<const int> cpus) {
  const Kernels kernels = kernels_for(false);
  std::vector<std::uint64_t> sums(cpus.size());
  run_on(cpus, [&](std::size_t i) {
    const Slice part = slice(size, cpus.size(), i, kBlock);
    sums[i] = kernels.read(address + part.offset, part.size);
  });
  std::uint64_t sum = 0;
  for (const std::uint64_t each : sums) sum ^= each;
  return sum;
}

}  // namespace linkgauge
