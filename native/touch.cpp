#include "touch.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "affinity.hpp"
#include "clock.hpp"
#include "error.hpp"
#include "slice.hpp"

namespace linkgauge {

namespace {

constexpr std::uint64_t kWord = 0x9E3779B97F4A7C15;  // any but zero

struct alignas(2 * kCacheLine) Toucher {
  Slice part{};
  double begin = 0;
  double end = 0;
};

void touch(std::byte* start, std::size_t size, std::size_t page) {
  for (std::size_t offset = 0; offset < size; offset += page) {
    *reinterpret_cast<volatile std::uint64_t*>(start + offset) = kWord;
  }
}

// Whether each page begins with the word, and is zero from there on.
bool is_fresh(const std::byte* start, std::size_t size, std::size_t page) {
  for (std::size_t offset = 0; offset < size; offset += page) {
    std::uint64_t first = 0, second = 0;
    std::memcpy(&first, start + offset, sizeof first);
    std::memcpy(&second, start + offset + sizeof first, sizeof second);
    // Equal to itself, moved by a word: all words are the second one.
    const std::byte* rest = start + offset + sizeof first;
    const std::size_t count = page - 2 * sizeof first;
    if (first != kWord || second != 0) return false;
    if (std::memcmp(rest, rest + sizeof first, count) != 0) return false;
  }
  return true;
}

}  // namespace

std::vector<double> first_touch(std::byte* address, std::size_t size, std::span<const int> cpus,
                                std::uint64_t loops, std::uint64_t batches) {
  check_cpus(cpus);
  if (size < 1) throw std::invalid_argument("size must be at least 1 byte");
  if (loops < 1 || batches < 1) throw std::invalid_argument("loops must be at least 1");
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = round_up(size, page);
  run_on(cpus, [](std::size_t) {});  // throws if one cannot be pinned: the others would wait for it
  std::vector<Toucher> threads(cpus.size());
  std::vector<double> times{0.0};
  std::atomic<int> error = 0;
  double spent = 0;
  std::uint64_t done = 0;
  std::barrier dropped(static_cast<std::ptrdiff_t>(cpus.size()));
  std::barrier touched(static_cast<std::ptrdiff_t>(cpus.size()), [&]() noexcept {
    double begin = threads[0].begin, end = threads[0].end;
    for (const Toucher& thread : threads) {
      begin = std::min(begin, thread.begin);
      end = std::max(end, thread.end);
    }
    spent += end - begin;
    if (++done % loops == 0) times.push_back(spent);
  });
  times.reserve(batches + 1);
  run_on(cpus, [&](std::size_t index) {
    Toucher& thread = threads[index];
    // Whole huge pages: two threads that fault one in would wait for each other.
    thread.part = slice(whole, cpus.size(), index, kHugePage);
    std::byte* start = address + thread.part.offset;
    for (std::uint64_t round = 0; round < loops * batches; ++round) {
      if (thread.part.size > 0 && madvise(start, thread.part.size, MADV_DONTNEED) != 0) {
        error = errno;
      }
      dropped.arrive_and_wait();
      thread.begin = now();
      touch(start, thread.part.size, page);
      thread.end = now();
      touched.arrive_and_wait();
    }
  });
  if (error != 0) fail("madvise(MADV_DONTNEED)", error);
  if (!is_fresh(address, whole, page)) throw std::runtime_error("fresh memory is not zero");
  return times;
}

}  // namespace linkgauge
