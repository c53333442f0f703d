#include "chase.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace linkgauge {

namespace {

struct Line {
  Line* next;
  std::uint64_t mark;  // 0, but while the cycle is counted
};
static_assert(sizeof(Line) <= kLink);

Line* line(std::byte* start, std::size_t index) {
  return reinterpret_cast<Line*>(start + index * kLink);
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// A walk from one marked line to the next one.
struct Walk {
  Line* at;
  std::size_t from;  // the number of the marked line where it began
};

struct Stretch {
  std::size_t to = 0;  // the number of the marked line where it ends
  std::size_t hops = 0;
};

// Many walks take their hops in turn, so that their accesses overlap. Empty if one leaves the
// range, or goes on without end.
std::vector<Stretch> walk_all(std::byte* start, std::size_t lines, std::vector<Walk> walks) {
  std::vector<Stretch> stretches(walks.size());
  std::size_t hops = 0;
  while (!walks.empty()) {
    for (std::size_t i = 0; i < walks.size();) {
      Walk& walk = walks[i];
      const auto offset =
          reinterpret_cast<std::uintptr_t>(walk.at->next) - reinterpret_cast<std::uintptr_t>(start);
      if (offset % kLink != 0 || offset / kLink >= lines) return {};
      walk.at = walk.at->next;
      ++stretches[walk.from].hops;
      ++hops;
      if (walk.at->mark == 0) {
        ++i;
        continue;
      }
      stretches[walk.from].to = walk.at->mark - 1;
      walk = walks.back();
      walks.pop_back();
    }
    if (hops > lines) return {};
  }
  return stretches;
}

}  // namespace

void link_cycle(std::byte* start, std::size_t size, std::uint64_t seed) {
  const std::size_t lines = size / kLink;
  for (std::size_t i = 0; i < lines; ++i) *line(start, i) = Line{line(start, i), 0};
  Random random(seed);
  for (std::size_t i = lines - 1; i > 0; --i) {
    std::swap(line(start, i)->next, line(start, random.next() % i)->next);
  }
}

std::size_t cycle_length(std::byte* start, std::size_t size) {
  constexpr std::size_t kWalks = 64;
  const std::size_t lines = size / kLink;
  const std::size_t count = std::min(kWalks, lines);
  std::vector<Walk> walks;
  for (std::size_t i = 0; i < count; ++i) {
    walks.push_back(Walk{line(start, lines / count * i), i});
    walks.back().at->mark = i + 1;
  }
  const std::vector<Stretch> stretches = walk_all(start, lines, walks);
  for (const Walk& walk : walks) walk.at->mark = 0;
  if (stretches.empty()) return 0;
  // Between two marked lines there is no other: stretch by stretch, the cycle is counted once.
  std::size_t at = 0;
  std::size_t length = 0;
  for (std::size_t taken = 0; taken < count; ++taken) {
    length += stretches[at].hops;
    at = stretches[at].to;
    if (at == 0) return length;
  }
  return 0;
}

const std::byte* follow(const std::byte* at, std::uint64_t hops) {
  constexpr std::uint64_t kUnrolled = 8;
  const auto* here = reinterpret_cast<const Line*>(at);
  for (; hops >= kUnrolled; hops -= kUnrolled) {
    for (std::uint64_t hop = 0; hop < kUnrolled; ++hop) here = here->next;
  }
  for (; hops > 0; --hops) here = here->next;
  return reinterpret_cast<const std::byte*>(here);
}

}  // namespace linkgauge
