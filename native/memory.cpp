#include "memory.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity.hpp"
#include "error.hpp"
#include "slice.hpp"
#include "text.hpp"

// Newer than the kernel headers of some build machines; an older kernel returns EINVAL.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

namespace linkgauge {

namespace {

constexpr std::size_t kSampledPages = 1024;
constexpr int kMostNodes = 1 << 16;
constexpr int kWeightedInterleave = 6;  // MPOL_WEIGHTED_INTERLEAVE, of Linux 6.9's headers

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Faults a range in on the calling thread, so that the pages come from its node. Returns an errno.
int populate(std::byte* start, std::size_t size) {
  if (size == 0) return 0;
  int error = 0;
  do {
    error = madvise(start, size, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error;
}

void touch(std::byte* start, std::size_t size) {
  const std::size_t page = page_size();
  for (std::size_t offset = 0; offset < size; offset += page) {
    *static_cast<volatile std::byte*>(start + offset) = std::byte{0};
  }
}

// Whole huge pages to each thread: the first thread to touch one places all of it.
int populate_on(std::span<const int> cpus, std::byte* start, std::size_t length) {
  std::atomic<int> error = 0;
  run_on(cpus, [&](std::size_t i) {
    const Slice part = slice(length, cpus.size(), i, kHugePage);
    const int failure = populate(start + part.offset, part.size);
    if (failure != 0) error = failure;
  });
  return error;
}

void touch_on(std::span<const int> cpus, std::byte* start, std::size_t length) {
  run_on(cpus, [&](std::size_t i) {
    const Slice part = slice(length, cpus.size(), i, kHugePage);
    touch(start + part.offset, part.size);
  });
}

void check(std::size_t size, std::span<const int> nodes, std::span<const int> cpus) {
  check_cpus(cpus);
  if (size == 0) throw std::invalid_argument("size must be at least 1 byte");
  for (const int node : nodes) {
    if (node < 0 || node >= kMostNodes) {
      throw std::invalid_argument("no such NUMA node: " + std::to_string(node));
    }
  }
  if (size > std::numeric_limits<std::size_t>::max() / 2) {
    fail("mmap of " + std::to_string(size) + " bytes", ENOMEM);
  }
}

bool is_locked(Kind kind) { return kind == Kind::Pinned || kind == Kind::Huge; }

std::optional<int> advice(Kind kind) {
  if (kind == Kind::Pageable) return std::nullopt;
  return kind == Kind::Base ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
}

bool has_huge_pages_alone(Kind kind) { return kind == Kind::Huge || kind == Kind::Transparent; }

int mode_of(Policy policy) {
  switch (policy) {
    case Policy::Bind:
      return MPOL_BIND;
    case Policy::Preferred:
      return MPOL_PREFERRED;
    case Policy::Interleave:
      return MPOL_INTERLEAVE;
    case Policy::Weighted:
      return kWeightedInterleave;
  }
  return MPOL_DEFAULT;
}

// Sum of smaps' fields that count huge pages, for the mapping that begins at `start`. The kernel
// walks the pages of a mapping when its lines are read, so those after this mapping are not read.
std::size_t huge_kibibytes(std::uintptr_t start) {
  char address[2 * sizeof start + 1];
  const auto end = std::to_chars(address, address + sizeof address, start, 16).ptr;
  const std::string heading = std::string(address, end) + "-";
  bool found = false;
  std::size_t total = 0;
  read_lines("/proc/self/smaps", [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    // A heading has a blank before any colon.
    if (colon == std::string_view::npos || line.find(' ') < colon) {
      if (found) return false;
      found = line.starts_with(heading);
    } else if (found) {
      const std::string_view name = line.substr(0, colon);
      if (name == "AnonHugePages" || name == "Private_Hugetlb") {
        total += leading_number(line.substr(colon + 1)).value_or(0);
      }
    }
    return true;
  });
  return total;
}

}  // namespace

Mapping::Mapping(std::size_t length, int flags) : length_(length) {
  void* start =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (start == MAP_FAILED) fail("mmap of " + std::to_string(length) + " bytes", errno);
  start_ = static_cast<std::byte*>(start);
}

Mapping::Mapping(Mapping&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), length_(std::exchange(other.length_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(length_, other.length_);
  return *this;
}

Mapping::~Mapping() {
  if (start_ != nullptr) munmap(start_, length_);
}

// The policy and the nodes it names; without a node, the system's own.
struct Memory::Placing {
  Policy policy;
  std::vector<int> nodes;
};

Memory::Memory(std::size_t size, Kind kind, std::optional<int> node, std::span<const int> cpus,
               Policy policy, std::span<const int> nodes)
    : size_(size) {
  Placing placing{policy, {nodes.begin(), nodes.end()}};
  const bool is_spread = policy == Policy::Interleave || policy == Policy::Weighted;
  if (!is_spread) placing.nodes.clear();
  if (!is_spread && node) placing.nodes.push_back(*node);
  check(size, placing.nodes, cpus);
  const bool has_pool = kind == Kind::Huge || kind == Kind::Pool;
  const int error = has_pool ? map_from_huge_page_pool(placing, cpus) : ENOMEM;
  if (error != 0 && kind == Kind::Pool) {
    fail(std::to_string(size) + " bytes of the huge page pool", error);
  }
  if (error != 0) map(kind, placing, cpus);
  if (is_locked(kind)) lock();
}

int Memory::map_from_huge_page_pool(const Placing& placing, std::span<const int> cpus) {
  length_ = round_up(size_, kHugePage);
  try {
    mapping_ = Mapping(length_, MAP_HUGETLB | MAP_HUGE_2MB);
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  address_ = mapping_.start();
  bind(placing);
  // The pool may have enough pages, but not on this node: populating reports that, while touching
  // them would raise SIGBUS.
  const int error = populate_on(cpus, address_, length_);
  if (error == 0) return 0;
  close();
  bound_ = false;
  bind_error_.reset();
  return error;
}

void Memory::map(Kind kind, const Placing& placing, std::span<const int> cpus) {
  const std::size_t page = page_size();
  const bool is_small = kind == Kind::Pageable || kind == Kind::Base;
  length_ = round_up(size_, is_small ? page : kHugePage);
  const std::size_t whole = length_ + kHugePage + 2 * page;
  try {
    mapping_ = Mapping(whole, 0);
  } catch (const std::system_error& error) {
    fail("mmap of " + std::to_string(size_) + " bytes", error.code().value());
  }
  const auto start = std::bit_cast<std::uintptr_t>(mapping_.start());
  const std::size_t lead = round_up(start + page, kHugePage) - start;
  address_ = mapping_.start() + lead;
  // The surplus of the alignment on both sides becomes a guard. It also keeps the kernel from
  // merging neighbouring mappings, whose huge pages would then be indistinguishable.
  mprotect(mapping_.start(), lead, PROT_NONE);
  mprotect(address_ + length_, whole - lead - length_, PROT_NONE);
  bind(placing);
  if (const auto how = advice(kind)) madvise(address_, length_, *how);
  if (populate_on(cpus, address_, length_) != 0) touch_on(cpus, address_, length_);
  if (has_huge_pages_alone(kind) && huge_bytes() < length_) {
    madvise(address_, length_, MADV_COLLAPSE);
  }
}

void Memory::bind(const Placing& placing) {
  if (placing.nodes.empty()) return;
  constexpr std::size_t kBits = std::numeric_limits<unsigned long>::digits;
  const auto highest = static_cast<std::size_t>(std::ranges::max(placing.nodes));
  std::vector<unsigned long> mask(highest / kBits + 1, 0);
  for (const int node : placing.nodes) {
    const auto bit = static_cast<std::size_t>(node);
    mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  // The kernel reads one bit less than the given number.
  const long result = syscall(SYS_mbind, address_, length_, mode_of(placing.policy), mask.data(),
                              mask.size() * kBits + 1, 0);
  bound_ = result == 0;
  if (!bound_) bind_error_ = describe("mbind", errno);
}

void Memory::lock() {
  // The whole mapping: locking a part would split it, and the huge page at its end.
  locked_ = mlock(address_, length_) == 0;
  if (!locked_) lock_error_ = describe("mlock", errno);
}

std::map<int, std::size_t> Memory::nodes() const {
  return address_ == nullptr ? std::map<int, std::size_t>() : nodes_of(address_, size_);
}

std::map<int, std::size_t> nodes_of(std::byte* start, std::size_t size) {
  const std::size_t page = page_size();
  const std::size_t pages = round_up(size, page) / page;
  const std::size_t count = std::min(pages, kSampledPages);
  std::vector<void*> samples(count);
  const std::size_t stretch = pages / std::max<std::size_t>(count, 1);
  for (std::size_t i = 0; i < count; ++i) {
    // At another place of each stretch: even steps would meet one node of interleaved memory alone.
    const std::size_t within = i * 0x9E3779B1U / 0x10000 % stretch;
    samples[i] = start + (pages * i / count + within) * page;
  }
  std::vector<int> status(count, -1);
  if (syscall(SYS_move_pages, 0, count, samples.data(), nullptr, status.data(), 0) != 0) return {};
  std::map<int, std::size_t> found;
  for (const int node : status) {
    if (node >= 0) ++found[node];  // below zero: not present
  }
  return found;
}

std::size_t Memory::huge_bytes() const {
  if (address_ == nullptr) return 0;
  const auto start = std::bit_cast<std::uintptr_t>(address_);
  return huge_kibibytes(start) * 1024;
}

void Memory::close() {
  mapping_ = Mapping();
  address_ = nullptr;
  locked_ = false;
}

}  // namespace linkgauge
