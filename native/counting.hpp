// What a thread meets with while it is timed: counted by the kernel, and by the CPU where that is
// granted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace linkgauge {

// Absent is what was not counted. Events of the CPU are those of user mode.
struct Counts {
  double seconds = 0;  // of all threads
  std::uint64_t page_faults = 0;
  std::uint64_t context_switches = 0;
  std::uint64_t involuntary = 0;  // switches away from a thread that could have run on
  std::optional<std::uint64_t> migrations = 0;
  std::optional<std::uint64_t> cycles = 0;
  std::optional<std::uint64_t> instructions = 0;
  std::optional<std::uint64_t> cache_misses = 0;
  std::optional<std::uint64_t> tlb_misses = 0;
  int refused = 0;  // errno of perf_event_open for the cycles

  // Another thread's, or another time's: what one of them lacks, both lack.
  Counts& operator+=(const Counts& other);
};

// Counts for the calling thread, which makes, starts, stops and destroys it. Nothing is opened
// between start and stop, which each cost some system calls (a microsecond) outside what they
// enclose.
class Counter {
 public:
  Counter();
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void start();
  Counts stop();

 private:
  static constexpr std::size_t kEvents = 4;

  Counts read() const;
  void open_events();
  void read_events(Counts& counts) const;

  Counts begin_;
  int migrations_ = -1;  // descriptor of the kernel's count
  int refused_ = 0;
  bool counted_among_open_ = false;
  std::array<int, kEvents> events_;  // descriptors of the CPU's: the cycles', which leads, first
};

}  // namespace linkgauge
