// Memory is what it says: aligned, zero, bound, touched; refusals are said.
#include "../memory.hpp"

#include <algorithm>
#include <cstdint>
#include <system_error>

#include "../slice.hpp"
#include "../touch.hpp"
#include "check.hpp"

namespace linkgauge::test {

namespace {

constexpr std::size_t kSize = 3'000'001;

bool is_zero(const Memory& memory) {
  const auto zero = [](std::byte each) { return each == std::byte{0}; };
  return std::all_of(memory.address(), memory.address() + memory.size(), zero);
}

void look(const Memory& memory, Kind kind) {
  check(memory.size() == kSize && is_zero(memory));
  check(reinterpret_cast<std::uintptr_t>(memory.address()) % kHugePage == 0, "aligned");
  const bool asks = kind == Kind::Pinned || kind == Kind::Huge;
  check(memory.locked() == (asks && !memory.lock_error()), "locked");
  check(memory.huge_bytes() <= kSize + kHugePage, "huge bytes");
  std::size_t pages = 0;
  for (const auto& [node, count] : memory.nodes()) pages += count;
  check(pages <= 1024, "pages sampled");
}

void kinds() {
  for (const Kind kind :
       {Kind::Pinned, Kind::Pageable, Kind::Huge, Kind::Base, Kind::Transparent}) {
    Memory memory(kSize, kind, std::nullopt, cpus());
    look(memory, kind);
    check(!memory.bound() && !memory.bind_error(), "no node was asked for");
    check(kind != Kind::Base || memory.huge_bytes() == 0, "in base pages alone");
    memory.close();
    memory.close();
    check(memory.address() == nullptr && memory.nodes().empty() && memory.huge_bytes() == 0);
  }
}

void pool() {
  try {
    const Memory memory(kSize, Kind::Pool, std::nullopt, cpus());
    look(memory, Kind::Pool);
  } catch (const std::system_error& error) {
    throw Skip(error.what());
  }
}

// A kernel without NUMA, or an emulator, refuses by errno.
void placed(Policy policy) {
  const int nodes[] = {0};
  const Memory memory(kSize, Kind::Pinned, 0, cpus(), policy, nodes);
  check(memory.bound() == !memory.bind_error());
  look(memory, Kind::Pinned);
  if (!memory.bound()) throw Skip(*memory.bind_error());
  const auto found = memory.nodes();
  if (found.empty()) throw Skip("move_pages does not say where pages lie");
  check(policy == Policy::Preferred || (found.size() == 1 && found.contains(0)), "on its node");
}

void bound() { placed(Policy::Bind); }
void preferred() { placed(Policy::Preferred); }
void interleaved() { placed(Policy::Interleave); }
void weighted() { placed(Policy::Weighted); }

void refused() {
  const Memory lost(4096, Kind::Pageable, 1000, cpus());
  check(!lost.bound() && lost.bind_error()->starts_with("mbind: "), "a missing node");
  const auto make = [](std::size_t size, std::optional<int> node, std::vector<int> on) {
    return [=] { Memory(size, Kind::Pinned, node, on); };
  };
  check(throws<std::invalid_argument>(make(0, std::nullopt, cpus())), "no size");
  check(throws<std::invalid_argument>(make(1, -1, cpus())), "no such node");
  check(throws<std::invalid_argument>(make(1, std::nullopt, {})), "no CPU");
  check(throws<std::system_error>(make(~std::size_t{0}, std::nullopt, cpus())), "too much");
}

void touched() {
  for (const Kind kind : {Kind::Base, Kind::Transparent}) {
    const Memory memory(kSize, kind, std::nullopt, cpus());
    std::fill_n(memory.address(), kSize, std::byte{1});
    const auto times = first_touch(memory.address(), kSize, cpus(), 2, 3);
    check(times.size() == 4 && times[0] == 0 && std::ranges::is_sorted(times));
    check(times[3] > 0 && memory.address()[8] == std::byte{0}, "fresh");
    check(kind != Kind::Base || memory.huge_bytes() == 0, "still in base pages");
  }
  check(throws<std::invalid_argument>([] { first_touch(nullptr, 1, {}, 1, 1); }));
  const Memory memory(4096, Kind::Base, std::nullopt, cpus());
  check(throws<std::invalid_argument>([&] { first_touch(memory.address(), 1, cpus(), 0, 1); }));
}

const Test kKinds("memory of every kind is aligned, zero and counted", kinds);
const Test kPool("the pool gives huge pages", pool);
const Test kBound("memory is bound to its node", bound);
const Test kPreferred("memory prefers its node", preferred);
const Test kInterleaved("memory is interleaved", interleaved);
const Test kWeighted("memory is interleaved by weights", weighted);
const Test kRefused("what cannot be had is refused", refused);
const Test kTouched("pages are given back and faulted in anew", touched);

}  // namespace

}  // namespace linkgauge::test
