#include "ping_pong.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "affinity.hpp"
#include "clock.hpp"
#include "memory.hpp"

namespace linkgauge {

namespace {

constexpr std::uint64_t kWarmUps = 1000;  // round trips
constexpr std::uint64_t kCounted = 10;    // further ones, once both threads count
constexpr std::size_t kPage = 4096;       // for the line alone
constexpr std::uint64_t kMostTrips = std::numeric_limits<std::uint64_t>::max() / 4;

using SharedLine = std::atomic<std::uint64_t>;
static_assert(SharedLine::is_always_lock_free);

// Waits until the line has this count, and counts on, by compare-and-swap alone: it asks for the
// line exclusively, once. A load while waiting would fetch it shared, and the store that follows
// ask again: two exchanges a bounce. The loop has no pause, which would count as latency.
void count_on(SharedLine& line, std::uint64_t count) {
  std::uint64_t expected = count;
  while (!line.compare_exchange_weak(expected, count + 1, std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
    expected = count;
  }
}

// Each thread waits for its turn at the beginning of a trip: the first for even counts, from this
// one on, the other for odd ones.
void serve(SharedLine& line, std::uint64_t first, std::uint64_t loops) {
  for (std::uint64_t loop = 0; loop < loops; ++loop) count_on(line, first + 2 * loop);
}

}  // namespace

PingPong ping_pong(int first, int second, std::uint64_t loops, std::uint64_t batches) {
  const std::array cpus{first, second};
  check_cpus(cpus);
  if (first == second) throw std::invalid_argument("a ping-pong takes two CPUs");
  if (loops < 1 || batches < 1) throw std::invalid_argument("loops must be at least 1");
  if (loops > kMostTrips / batches) throw std::invalid_argument("too many loops");
  const auto own = std::span(cpus).first(1);
  const Memory memory(kPage, Kind::Pageable, std::nullopt, own);
  SharedLine& line = *new (memory.address()) SharedLine(0);
  PingPong found{};
  found.times.reserve(batches + 1);
  Counts counts;  // of the other thread
  int unpinned = 0;
  std::exception_ptr unstarted;
  run_on(own, [&](std::size_t) {
    constexpr int kStarting = -1;
    std::atomic<int> pinned = kStarting;
    try {
      const std::jthread other([&] {
        const int error = pin_to(second);
        pinned = error;
        pinned.notify_one();
        if (error != 0) return;
        Counter counter;
        serve(line, 1, kWarmUps);
        counter.start();
        serve(line, 1 + 2 * kWarmUps, kCounted + loops * batches);
        counts = counter.stop();
      });
      pinned.wait(kStarting);
      unpinned = pinned;
      if (unpinned != 0) return;
      Counter counter;
      serve(line, 0, kWarmUps);
      counter.start();
      serve(line, 2 * kWarmUps, kCounted);
      found.times.push_back(now());
      for (std::uint64_t batch = 0; batch < batches; ++batch) {
        serve(line, 2 * (kWarmUps + kCounted + batch * loops), loops);
        found.times.push_back(now());
      }
      found.counts = counter.stop();
    } catch (const std::system_error&) {
      unstarted = std::current_exception();
    }
  });
  if (unstarted) std::rethrow_exception(unstarted);
  if (unpinned != 0) fail_to_pin(second, unpinned);
  found.counts += counts;
  found.bounces = line.load() - 2 * (kWarmUps + kCounted);
  return found;
}

}  // namespace linkgauge
