#include "primes.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <latch>
#include <stdexcept>
#include <thread>

#include "affinity.hpp"
#include "clock.hpp"
#include "slice.hpp"

namespace linkgauge {

namespace {

// An event: each number is divided by 2, 3, 4 … in 64 bits, up to its root in double precision or
// to the first divisor.
[[gnu::noinline]] std::uint64_t primes_below(std::uint64_t limit) {
  std::uint64_t found = 0;
  for (std::uint64_t number = 3; number < limit; ++number) {
    const double root = std::sqrt(static_cast<double>(number));
    std::uint64_t divisor = 2;
    while (static_cast<double>(divisor) <= root && number % divisor != 0) ++divisor;
    found += static_cast<double>(divisor) > root ? 1 : 0;
  }
  return found;
}

// In cache lines of its own.
struct alignas(2 * kCacheLine) Share : PrimesThread {
  int pin_error = 0;
};

struct Search {
  Search(std::uint64_t limit_, std::uint64_t events, std::ptrdiff_t threads)
      : limit(limit_), left(static_cast<std::int64_t>(events)), start(threads) {}

  // Read anew for each event, or the compiler might find the primes once.
  volatile std::uint64_t limit;
  alignas(2 * kCacheLine) std::atomic<std::int64_t> left;  // events that no thread has taken
  alignas(2 * kCacheLine) std::latch start;
};

void take_part(Search& search, Share& share, int cpu) {
  share.pin_error = pin_to(cpu);
  Counter counter;
  search.start.arrive_and_wait();
  if (share.pin_error != 0) return;
  counter.start();
  share.begin = now();
  while (search.left.fetch_sub(1, std::memory_order_relaxed) > 0) {
    share.found += primes_below(search.limit);
    ++share.events;
  }
  share.end = now();
  share.counts = counter.stop();
}

}  // namespace

std::vector<PrimesThread> find_primes(std::span<const int> cpus, std::uint64_t limit,
                                      std::uint64_t events) {
  check_cpus(cpus);
  if (events < 1) throw std::invalid_argument("events must be at least 1");
  std::vector<Share> shares(cpus.size());
  Search search(limit, events, static_cast<std::ptrdiff_t>(cpus.size()));
  {
    std::vector<std::jthread> threads;
    threads.reserve(cpus.size());
    try {
      for (std::size_t i = 0; i < cpus.size(); ++i) {
        threads.emplace_back([&, i] { take_part(search, shares[i], cpus[i]); });
      }
    } catch (...) {  // those that did start wait for the others
      search.left = 0;
      search.start.count_down(static_cast<std::ptrdiff_t>(cpus.size() - threads.size()));
      throw;
    }
  }
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (shares[i].pin_error != 0) fail_to_pin(cpus[i], shares[i].pin_error);
  }
  return {shares.begin(), shares.end()};
}

}  // namespace linkgauge
