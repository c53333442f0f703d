// Every kernel that this CPU runs is exact at odd sizes and alignments, and touches nothing else.
#include "../kernels.hpp"

#include <algorithm>
#include <cstring>

#include "../slice.hpp"
#include "check.hpp"

namespace linkgauge::test {

namespace {

constexpr std::size_t kBlock = 8 * 4096;  // what the widest kernels go over at once
constexpr std::size_t kSizes[] = {1,    7,          8,      63,         64,
                                  65,   129,        600,    4095,       4096,
                                  4161, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock + 4096 + 67};
constexpr std::size_t kOffsets[] = {0, 1, 8, 63, 64, 77};
constexpr std::uint64_t kSeed = 5;

std::string case_of(const std::string& kernel, std::size_t size, std::size_t from, std::size_t to) {
  return kernel + ": " + std::to_string(size) + " bytes from +" + std::to_string(from) + " to +" +
         std::to_string(to);
}

bool holds(Arena& arena, const std::vector<std::byte>& wanted) {
  return std::equal(wanted.begin(), wanted.end(), arena.begin()) && arena.is_guarded();
}

std::uint64_t xor_of(const std::vector<std::byte>& bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof sum) {
    std::uint64_t one = 0;
    std::memcpy(&one, bytes.data() + at, std::min(sizeof one, bytes.size() - at));
    sum ^= one;
  }
  return sum;
}

template <class Body>
void for_each_case(Op op, Body body) {
  for (const std::string& name : kernel_names(op)) {
    const Kernels kernels = kernels_named(op, name);
    for (const std::size_t size : kSizes) {
      for (const std::size_t offset : kOffsets) body(name, kernels, size, offset);
    }
  }
}

void reads() {
  for_each_case(Op::Read, [](const std::string& name, const Kernels& kernels, std::size_t size,
                             std::size_t offset) {
    const auto content = words(size, kSeed);
    Arena source(size, offset);
    std::ranges::copy(content, source.begin());
    const std::uint64_t sum = kernels.read(source.begin(), size);
    check(sum == xor_of(content), case_of(name, size, offset, 0));
    check(holds(source, content), case_of(name, size, offset, 0));
  });
}

void writes() {
  const std::uint64_t one = word(kSeed, 0);
  for_each_case(Op::Write, [&](const std::string& name, const Kernels& kernels, std::size_t size,
                               std::size_t offset) {
    Arena destination(size, offset);
    kernels.write(destination.begin(), size, one);
    std::vector<std::byte> wanted(size);
    for (std::size_t i = 0; i < size; ++i) wanted[i] = std::byte(one >> i % sizeof one * 8 & 0xFF);
    check(holds(destination, wanted), case_of(name, size, 0, offset));
  });
}

void copies() {
  for_each_case(Op::Copy, [](const std::string& name, const Kernels& kernels, std::size_t size,
                             std::size_t offset) {
    const auto content = words(size, kSeed);
    Arena source(size, offset);
    std::ranges::copy(content, source.begin());
    for (const std::size_t to : {std::size_t{0}, std::size_t{8}, std::size_t{61}}) {
      Arena destination(size, to);
      kernels.copy(destination.begin(), source.begin(), size);
      check(holds(destination, content), case_of(name, size, offset, to));
    }
    check(holds(source, content), case_of(name, size, offset, 0));
  });
}

// Small whole numbers: no operation rounds them, whether the CPU fuses a product and a sum or not.
std::vector<std::byte> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes(count * sizeof(double));
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<double>(word(seed, i) % 1000);
    std::memcpy(bytes.data() + i * sizeof number, &number, sizeof number);
  }
  return bytes;
}

// For each number of both.
std::vector<std::byte> computed(Op op, const std::vector<std::byte>& first,
                                const std::vector<std::byte>& second) {
  std::vector<std::byte> result(first.size());
  for (std::size_t at = 0; at < first.size(); at += sizeof(double)) {
    double one = 0, other = 0;
    std::memcpy(&one, first.data() + at, sizeof one);
    std::memcpy(&other, second.data() + at, sizeof other);
    const double made = op == Op::Scale ? 3 * one : op == Op::Add ? one + other : one + 3 * other;
    std::memcpy(result.data() + at, &made, sizeof made);
  }
  return result;
}

void computes_one(Op op, const std::string& name, std::size_t count, std::size_t from,
                  std::size_t to) {
  const Kernels kernels = kernels_named(op, name);
  const auto first = numbers(count, kSeed), second = numbers(count, kSeed + 1);
  Arena one(first.size(), from), other(second.size(), from + 8), destination(first.size(), to);
  std::ranges::copy(first, one.begin());
  std::ranges::copy(second, other.begin());
  carry_out(kernels, op, {destination.begin(), one.begin(), other.begin(), first.size(), 0});
  check(holds(destination, computed(op, first, second)), case_of(name, first.size(), from, to));
  check(holds(one, first) && holds(other, second), case_of(name, first.size(), from, to));
}

void computations() {
  for (const Op op : {Op::Scale, Op::Add, Op::Triad}) {
    for (const std::string& name : kernel_names(op)) {
      for (const std::size_t size : kSizes) {
        for (const std::size_t from : kOffsets) {
          for (const std::size_t to : {0, 8, 40}) {
            computes_one(op, name, (size + 7) / sizeof(double), from, to);
          }
        }
      }
    }
  }
}

void named() {
  for (const Op op : {Op::Read, Op::Write, Op::Copy, Op::Scale, Op::Add, Op::Triad}) {
    const auto names = kernel_names(op);
#if defined(__aarch64__)
    check(std::ranges::count(names, "plain-neon") == 1, "a kernel of NEON");
#endif
    for (const bool streaming : {false, true}) {
      check(std::ranges::count(names, default_kernel(op, streaming)) == 1, "the default");
    }
    check(throws<std::invalid_argument>([op] { kernels_named(op, "none"); }));
  }
}

// Contiguous, all bytes once, at multiples of the granule.
void slices() {
  for (const std::size_t size : {1, 63, 64, 65, 1000, 4096}) {
    for (const std::size_t parts : {1, 2, 3, 7, 100}) {
      std::size_t at = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const Slice part = slice(size, parts, i, kCacheLine);
        check(part.offset == at && (part.size == 0 || part.offset % kCacheLine == 0));
        at += part.size;
      }
      check(at == size);
    }
  }
}

const Test kReads("every kernel reads every byte", reads);
const Test kWrites("every kernel writes its range alone", writes);
const Test kCopies("every kernel copies its range alone", copies);
const Test kComputations("every kernel of STREAM's computes its range alone", computations);
const Test kNamed("defaults are among the kernels, and unknown names are refused", named);
const Test kSlices("slices cover a range", slices);

}  // namespace

}  // namespace linkgauge::test
