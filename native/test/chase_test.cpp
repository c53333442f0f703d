// Pointers lead through every line once, and back.
#include "../chase.hpp"

#include <algorithm>
#include <set>

#include "../memory.hpp"
#include "check.hpp"

namespace linkgauge::test {

namespace {

void cycles() {
  for (const std::size_t lines : {1, 2, 3, 64, 65, 5000}) {
    const std::size_t size = lines * kLink + (lines > 1 ? 7 : 0);
    Arena arena(size, 0);
    link_cycle(arena.begin(), size, lines);
    check(cycle_length(arena.begin(), size) == lines, std::to_string(lines) + " lines");
    std::set<const std::byte*> met;
    const std::byte* at = arena.begin();
    for (std::size_t hop = 0; hop < lines; ++hop) {
      met.insert(at);
      at = follow(at, 1);
    }
    check(met.size() == lines && at == arena.begin() && arena.is_guarded(), "every line once");
    check(follow(arena.begin(), lines) == arena.begin(), "and back");
  }
}

void broken() {
  constexpr std::size_t kSize = 100 * kLink;
  Arena arena(kSize, 0);
  link_cycle(arena.begin(), kSize, 3);
  const std::byte* second = follow(arena.begin(), 1);
  const std::byte* back = arena.begin();
  std::copy_n(reinterpret_cast<const std::byte*>(&back), sizeof back,
              arena.begin() + (second - arena.begin()));
  check(cycle_length(arena.begin(), kSize) == 2, "a cycle of two lines");
}

const Test kCycles("a cycle leads through every line", cycles);
const Test kBroken("a shorter cycle is found to be one", broken);

}  // namespace

}  // namespace linkgauge::test
