// Host memory of chosen node, page size and residency, which reports what it obtained.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace linkgauge {

// Pinned may be in huge pages, where the kernel has them ready; Base never is, and Huge must be.
enum class Kind { Pinned, Pageable, Huge, Base };

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

// Number of pages from `start` on that lie on each NUMA node, out of at most 1024 sampled evenly;
// empty if the kernel does not report it. The pages may be a driver's.
std::map<int, std::size_t> nodes_of(std::byte* start, std::size_t size);

class Memory {
 public:
  // Maps `size` bytes at a 2 MiB boundary, binds them to `node` where one is given, and has threads
  // on `cpus` first-touch them. Throws std::system_error if the memory is not available; a refusal
  // to bind or to lock is no error, but reported.
  Memory(std::size_t size, Kind kind, std::optional<int> node, std::span<const int> cpus);

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
  bool map_from_huge_page_pool(std::optional<int> node, std::span<const int> cpus);
  void map(Kind kind, std::optional<int> node, std::span<const int> cpus);
  void bind(std::optional<int> node);
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
