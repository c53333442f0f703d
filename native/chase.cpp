#include "chase.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
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

// A bijection of the numbers below a power of two, and its inverse: rounds of a sum, a product with
// an odd number and a shift by at least half of the bits, each of which can be undone.
class Shuffle {
 public:
  Shuffle(std::uint64_t seed, unsigned bits)
      : mask_((std::uint64_t{1} << bits) - 1), shift_((bits + 1) / 2) {
    for (std::uint64_t& key : keys_) {
      seed = mixed(seed + kGolden);
      key = seed;
    }
  }

  std::uint64_t operator()(std::uint64_t x) const {
    for (const std::uint64_t key : keys_) {
      x = (x + key) * kFactor & mask_;
      x ^= x >> shift_;
    }
    return x;
  }

  std::uint64_t inverse(std::uint64_t x) const {
    for (std::size_t round = kRounds; round-- > 0;) {
      x ^= x >> shift_;
      x = (x * kInverse - keys_[round]) & mask_;
    }
    return x;
  }

 private:
  static constexpr std::size_t kRounds = 4;
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  static constexpr std::uint64_t kFactor = 0xBF58476D1CE4E5B9;
  static constexpr std::uint64_t kInverse = 0x96DE1B173F119089;
  static_assert(kFactor * kInverse == 1);

  // As SplitMix64 does it (Steele, Lea, Flood, OOPSLA 2014).
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * kFactor;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  std::uint64_t mask_;
  unsigned shift_;
  std::array<std::uint64_t, kRounds> keys_{};
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

// The order of the lines is a bijection of their numbers. Of a number of lines that is no power of
// two, those beyond are passed over (cycle walking; Black, Rogaway, CT-RSA 2002). Line after line
// is written once: a shuffle of what is larger than the caches takes many times as long.
void link_cycle(std::byte* start, std::size_t size, std::uint64_t seed) {
  const std::size_t lines = size / kLink;
  const Shuffle shuffle(seed, static_cast<unsigned>(std::bit_width(lines - 1)));
  for (std::size_t i = 0; i < lines; ++i) {
    std::uint64_t place = i;
    do place = shuffle.inverse(place);
    while (place >= lines);
    place = place + 1 == lines ? 0 : place + 1;
    do place = shuffle(place);
    while (place >= lines);
    *line(start, i) = Line{line(start, place), 0};
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
