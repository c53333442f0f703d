#include "kernels.hpp"

#include <dlfcn.h>

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
using Double [[gnu::may_alias]] = double;  // in memory of any type

// The number of this index in memory of any type, at any address.
double number_at(const std::byte* numbers, std::size_t index) {
  double number;
  std::memcpy(&number, numbers + index * sizeof number, sizeof number);
  return number;
}

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

// The C library's copy is tuned for each CPU; on many it streams large sizes by itself. It is asked
// for by name, but where programs are static: zig's linker binds calls of memcpy to one of its own,
// a third slower in the cache.
void* const kNamed = dlsym(RTLD_DEFAULT, "memcpy");
const auto kOfLibc = kNamed ? reinterpret_cast<decltype(&std::memcpy)>(kNamed) : &std::memcpy;

void copy(std::byte* destination, const std::byte* source, std::size_t size) {
  kOfLibc(destination, source, size);
}

void copy_linear(std::byte* destination, const std::byte* source, std::size_t size) {
  Block words;
  for (; size >= sizeof words;
       destination += sizeof words, source += sizeof words, size -= sizeof words) {
    std::memcpy(&words, source, sizeof words);
    std::memcpy(destination, &words, sizeof words);
    asm volatile("" ::: "memory");  // otherwise the compiler may call memcpy for the whole loop
  }
  std::memcpy(destination, source, size);
}

void scale(std::byte* destination, const std::byte* source, std::size_t size) {
  auto* to = reinterpret_cast<Double*>(destination);
  for (std::size_t i = 0; i < size / sizeof *to; ++i) to[i] = kScalar * number_at(source, i);
}

void add(std::byte* destination, const std::byte* first, const std::byte* second,
         std::size_t size) {
  auto* to = reinterpret_cast<Double*>(destination);
  for (std::size_t i = 0; i < size / sizeof *to; ++i) {
    to[i] = number_at(first, i) + number_at(second, i);
  }
}

void triad(std::byte* destination, const std::byte* first, const std::byte* second,
           std::size_t size) {
  auto* to = reinterpret_cast<Double*>(destination);
  for (std::size_t i = 0; i < size / sizeof *to; ++i) {
    to[i] = number_at(first, i) + kScalar * number_at(second, i);
  }
}

}  // namespace portable

std::uint64_t carry_out(const Kernels& kernels, Op op, const Work& work) {
  const auto& [destination, source, second, size, word] = work;
  switch (op) {
    case Op::Read:
      return kernels.read(source, size);
    case Op::Write:
      kernels.write(destination, size, word);
      break;
    case Op::Copy:
      kernels.copy(destination, source, size);
      break;
    case Op::Scale:
      kernels.scale(destination, source, size);
      break;
    case Op::Add:
      kernels.add(destination, source, second, size);
      break;
    case Op::Triad:
      kernels.triad(destination, source, second, size);
      break;
  }
  return 0;
}

}  // namespace linkgauge
