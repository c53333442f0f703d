#include "counting.hpp"

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "clock.hpp"

namespace linkgauge {

namespace {

using Count = std::optional<std::uint64_t>;

struct Event {
  std::uint32_t type;
  std::uint64_t config;
  Count Counts::* count;
};

constexpr std::uint64_t kTlbReadMisses = PERF_COUNT_HW_CACHE_DTLB |
                                         (std::uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8) |
                                         (std::uint64_t{PERF_COUNT_HW_CACHE_RESULT_MISS} << 16);

constexpr std::array kCpuEvents{
    Event{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, &Counts::cycles},
    Event{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, &Counts::instructions},
    Event{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, &Counts::cache_misses},
    Event{PERF_TYPE_HW_CACHE, kTlbReadMisses, &Counts::tlb_misses},
};

// Descriptors are few (often 1024), and threads may be many: half of them are left to others.
std::atomic<rlim_t> descriptors = 0;

bool take_descriptors(rlim_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if ((descriptors += count) <= limit.rlim_cur / 2) return true;
  descriptors -= count;
  return false;
}

int open_event(const Event& event, int leader, bool with_kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_kernel = with_kernel ? 0 : 1;
  attributes.exclude_hv = with_kernel ? 0 : 1;
  constexpr int kThisThread = 0;
  constexpr int kAnyCpu = -1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, kThisThread, kAnyCpu, leader,
                                  PERF_FLAG_FD_CLOEXEC));
}

// The scheduler's own account of the calling thread, for want of permission to ask perf.
Count migrations_by_scheduler() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen("/proc/thread-self/sched", "re"), &std::fclose);
  if (!file) return std::nullopt;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
    unsigned long long count = 0;
    if (std::sscanf(line.data(), "se.nr_migrations : %llu", &count) == 1) return count;
  }
  return std::nullopt;
}

void add(Count& to, const Count& more) {
  if (to && more) {
    *to += *more;
  } else {
    to.reset();
  }
}

void subtract(Count& from, const Count& less) {
  if (from && less) {
    *from -= *less;
  } else {
    from.reset();
  }
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  seconds += other.seconds;
  page_faults += other.page_faults;
  context_switches += other.context_switches;
  involuntary += other.involuntary;
  add(migrations, other.migrations);
  for (const Event& event : kCpuEvents) add(this->*event.count, other.*event.count);
  if (refused == 0) refused = other.refused;
  return *this;
}

Counter::Counter() {
  events_.fill(-1);
  counted_among_open_ = take_descriptors(kEvents + 1);
  if (!counted_among_open_) {
    refused_ = EMFILE;
    return;
  }
  const Event migrations{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, nullptr};
  migrations_ = open_event(migrations, -1, true);
  open_events();
}

// A missing event other than the first one is left out.
void Counter::open_events() {
  static_assert(kCpuEvents.size() == kEvents);
  events_[0] = open_event(kCpuEvents[0], -1, false);
  if (events_[0] < 0) {
    refused_ = errno;
    return;
  }
  for (std::size_t i = 1; i < kEvents; ++i) {
    events_[i] = open_event(kCpuEvents[i], events_[0], false);
  }
}

Counter::~Counter() {
  for (const int event : events_) {
    if (event >= 0) ::close(event);
  }
  if (migrations_ >= 0) ::close(migrations_);
  if (counted_among_open_) descriptors -= kEvents + 1;
}

void Counter::start() {
  begin_ = read();
  begin_.seconds = now();
}

Counts Counter::stop() {
  const double end = now();
  Counts counts = read();
  counts.seconds = end - begin_.seconds;
  counts.page_faults -= begin_.page_faults;
  counts.context_switches -= begin_.context_switches;
  counts.involuntary -= begin_.involuntary;
  subtract(counts.migrations, begin_.migrations);
  for (const Event& event : kCpuEvents) subtract(counts.*event.count, begin_.*event.count);
  return counts;
}

Counts Counter::read() const {
  Counts counts;
  counts.refused = refused_;
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto number = [](long count) { return static_cast<std::uint64_t>(count); };
  counts.page_faults = number(usage.ru_minflt) + number(usage.ru_majflt);
  counts.involuntary = number(usage.ru_nivcsw);
  counts.context_switches = number(usage.ru_nvcsw) + counts.involuntary;
  counts.migrations = std::nullopt;
  std::array<std::uint64_t, 4> kernel{};  // how many, two times, count
  if (migrations_ < 0) {
    counts.migrations = migrations_by_scheduler();
  } else if (::read(migrations_, kernel.data(), sizeof kernel) > 0) {
    counts.migrations = kernel.back();
  }
  read_events(counts);
  return counts;
}

// One call reads all of the group.
void Counter::read_events(Counts& counts) const {
  for (const Event& event : kCpuEvents) counts.*event.count = std::nullopt;
  std::array<std::uint64_t, 3 + kEvents> words{};  // how many, two times, counts
  if (events_[0] < 0 || ::read(events_[0], words.data(), sizeof words) <= 0) return;
  // Events that had to share the CPU's counters with others were not counted all the time.
  const bool counted_always = words[1] == words[2];
  std::size_t place = 3;
  for (std::size_t i = 0; i < kEvents; ++i) {
    if (events_[i] < 0) continue;
    if (counted_always) counts.*kCpuEvents[i].count = words[place];
    ++place;
  }
}

}  // namespace linkgauge
