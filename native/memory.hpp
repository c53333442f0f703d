// Host memory of chosen node, page size and residency, which reports what it obtained.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace linkgauge {

// Pinned is locked and advised to huge pages, Huge is locked and takes the pool's, else transparent
// ones. The others are not locked: Pageable as the system gives it, Base in pages of the smallest
// size, Transparent advised to huge pages, and Pool in huge pages of the pool (hugetlb) alone.
enum class Kind { Pinned, Pageable, Huge, Base, Transparent, Pool };

// Where the kernel takes pages from: the node alone, the node as long as it has some, or several
// nodes in turn, one page each or as many as the kernel's weights say (Linux 6.9).
enum class Policy { Bind, Preferred, Interleave, Weighted };

// A private anonymous mapping with a start and a length; unmapped when destroyed.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::size_t length, int flags);  // throws std::system_error
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* start() const { return start_; }
  std::size_t length() const { return length_; }

 private:
  std::byte* start_ = nullptr;
  std::size_t length_ = 0;
};

// Number of pages from `start` on that lie on each NUMA node, out of at most 1024, one from each of
// so many equal stretches; empty if the kernel does not report it. The pages may be a driver's.
std::map<int, std::size_t> nodes_of(std::byte* start, std::size_t size);

class Memory {
 public:
  // Maps `size` bytes at a 2 MiB boundary, binds them to `node` where one is given, and has threads
  // on `cpus` first-touch them. Policies over several nodes place them on `nodes` instead. Throws
  // std::system_error if the memory is not available; a refusal of the policy or to lock is no
  // error, but reported.
  Memory(std::size_t size, Kind kind, std::optional<int> node, std::span<const int> cpus,
         Policy policy = Policy::Bind, std::span<const int> nodes = {});

  std::byte* address() const { return address_; }
  std::size_t size() const { return size_; }
  bool bound() const { return bound_; }
  bool locked() const { return locked_; }
  const std::optional<std::string>& bind_error() const { return bind_error_; }
  const std::optional<std::string>& lock_error() const { return lock_error_; }

  // nodes_of() its pages; empty once closed.
  std::map<int, std::size_t> nodes() const;
  // Bytes backed by huge pages; 0 if the kernel does not report it.
  std::size_t huge_bytes() const;
  // Unmaps. The address is null from then on.
  void close();

 private:
  struct Placing;

  // Returns an errno: there may be no pool, or too few pages in it.
  int map_from_huge_page_pool(const Placing& placing, std::span<const int> cpus);
  void map(Kind kind, const Placing& placing, std::span<const int> cpus);
  void bind(const Placing& placing);
  void lock();

  Mapping mapping_;
  std::byte* address_ = nullptr;
  std::size_t size_;
  std::size_t length_ = 0;  // what is mapped and touched: size, rounded up to whole pages
  bool bound_ = false;
  bool locked_ = false;
  std::optional<std::string> bind_error_;
  std::optional<std::string> lock_error_;
};

}  // namespace linkgauge
