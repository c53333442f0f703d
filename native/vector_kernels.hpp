// Kernels for any vector unit, as templates over its operations on a cache line.
//
// Files that include this are compiled for the unit that they name. They must not call inline
// functions of the standard library: the linker keeps one copy of each for all files, and that must
// not be one that an older CPU cannot run. `Vector` is local to its file, and so is everything
// instantiated from it:
//
//   Line                      a cache line in registers
//   load(source)              from any address
//   store(destination, line)  to any address
//   stream(destination, line) past the caches, to a multiple of a cache line
//   broadcast(word), exclusive_or(line, line), fold(line)
//   numbers(value)            eight floating-point numbers
//   product(line, line), sum(line, line), of such numbers
//   Register                  the same of a single register, but for stream and fence
//   fence()                   the streamed stores are done
#pragma once

#include <cstddef>
#include <cstdint>

#include "slice.hpp"
#include "variants.hpp"

namespace linkgauge {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLanes = 4;  // lines in flight independently of each other

enum class Store { Plain, Streaming };

// Instead of a number of pages: one register after another.
constexpr std::size_t kLinear = 0;

// Calls body(offset, lane) for every whole `Line` (a register) of `size` bytes, in their order, and
// returns how many bytes these are: what compilers make of a simple loop. Several stores in a
// block, which they may sort as they like, cost plain copies a sixth of their rate (AMD Zen 3).
template <class Line, class Body>
inline std::size_t walk_linearly(std::size_t size, Body body) {
  const std::size_t end = size / sizeof(Line) * sizeof(Line);
  for (std::size_t done = 0; done != end; done += sizeof(Line)) {
    body(done, 0);
    asm volatile("");  // otherwise the compiler may call memcpy for the whole loop
  }
  return end;
}

// Calls body(offset, lane) for every whole cache line of `size` bytes, and returns how many bytes
// these are. Several pages are walked side by side, some lines of each in turn, which keeps more
// misses in flight than one stream's hardware prefetcher does. With `Prefetch` the same lines of
// the next block are prefetched meanwhile; beyond the end that is harmless.
template <std::size_t Pages, bool Prefetch, class Body>
inline std::size_t walk(const std::byte* source, std::size_t size, Body body) {
  constexpr std::size_t kBlock = Pages * kPage;
  constexpr std::size_t kLines = Pages < kLanes ? kLanes / Pages : 1;
  std::size_t done = 0;
  for (; size - done >= kBlock; done += kBlock) {
    for (std::size_t line = 0; line < kPage; line += kLines * kCacheLine) {
#pragma GCC unroll 8
      for (std::size_t page = 0; page < Pages; ++page) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kLines; ++i) {
          const std::size_t offset = done + page * kPage + line + i * kCacheLine;
          if constexpr (Prefetch) __builtin_prefetch(source + offset + kBlock);
          body(offset, (page * kLines + i) % kLanes);
        }
      }
      // Otherwise the compiler unrolls this loop and sorts its loads by lane: a stride that
      // hardware prefetchers do not follow (an AVX-512 read of 8 GB/s instead of 25).
      asm volatile("" ::: "memory");
    }
  }
  for (; size - done >= kCacheLine; done += kCacheLine) body(done, 0);
  return done;
}

template <class Vector, std::size_t Pages, bool Prefetch, class Body>
inline std::size_t go_over(const std::byte* source, std::size_t size, Body body) {
  if constexpr (Pages == kLinear) {
    return walk_linearly<typename Vector::Line>(size, body);
  } else {
    return walk<Pages, Prefetch>(source, size, body);
  }
}

// Bytes up to the first cache line boundary, at most `size`.
static inline std::size_t head_of(const std::byte* destination, std::size_t size) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(destination) % kCacheLine;
  const std::size_t head = (kCacheLine - past) % kCacheLine;
  return head < size ? head : size;
}

template <class Vector, Store store>
inline void put(std::byte* destination, typename Vector::Line line) {
  if constexpr (store == Store::Streaming) {
    Vector::stream(destination, line);
  } else {
    Vector::store(destination, line);
  }
}

template <class Vector, std::size_t Pages, bool Prefetch>
std::uint64_t read(const std::byte* source, std::size_t size) {
  typename Vector::Line sums[kLanes];
  for (auto& sum : sums) sum = Vector::broadcast(0);
  const std::size_t done =
      go_over<Vector, Pages, Prefetch>(source, size, [&](std::size_t offset, std::size_t lane) {
        sums[lane] = Vector::exclusive_or(sums[lane], Vector::load(source + offset));
      });
  std::uint64_t sum = portable::read(source + done, size - done);
  for (const auto& each : sums) sum ^= Vector::fold(each);
  return sum;
}

template <class Vector, Store store, std::size_t Pages>
void write(std::byte* destination, std::size_t size, std::uint64_t word) {
  const std::size_t head = head_of(destination, size);
  portable::write(destination, head, word);
  destination += head;
  size -= head;
  // The rest starts with the word rotated by the head.
  const std::size_t bits = head % sizeof word * 8;
  const std::uint64_t turned = bits == 0 ? word : word >> bits | word << (64 - bits);
  const typename Vector::Line line = Vector::broadcast(turned);
  const std::size_t done = go_over<Vector, Pages, false>(
      destination, size,
      [&](std::size_t offset, std::size_t) { put<Vector, store>(destination + offset, line); });
  portable::write(destination + done, size - done, turned);
  if constexpr (store == Store::Streaming) Vector::fence();
}

template <class Vector, Store store, std::size_t Pages, bool Prefetch>
void copy(std::byte* destination, const std::byte* source, std::size_t size) {
  const std::size_t head = head_of(destination, size);
  portable::copy(destination, source, head);
  destination += head;
  source += head;
  size -= head;
  const std::size_t done =
      go_over<Vector, Pages, Prefetch>(source, size, [&](std::size_t offset, std::size_t) {
        put<Vector, store>(destination + offset, Vector::load(source + offset));
      });
  portable::copy(destination + done, source + done, size - done);
  if constexpr (store == Store::Streaming) Vector::fence();
}

template <class Vector, Store store, std::size_t Pages, bool Prefetch>
void scale(std::byte* destination, const std::byte* source, std::size_t size) {
  const std::size_t head = head_of(destination, size);
  portable::scale(destination, source, head);
  destination += head;
  source += head;
  size -= head;
  const typename Vector::Line scalar = Vector::numbers(kScalar);
  const std::size_t done =
      go_over<Vector, Pages, Prefetch>(source, size, [&](std::size_t offset, std::size_t) {
        put<Vector, store>(destination + offset,
                           Vector::product(Vector::load(source + offset), scalar));
      });
  portable::scale(destination + done, source + done, size - done);
  if constexpr (store == Store::Streaming) Vector::fence();
}

// Add, and with `Scaled` triad.
template <class Vector, bool Scaled, Store store, std::size_t Pages, bool Prefetch>
void combine(std::byte* destination, const std::byte* first, const std::byte* second,
             std::size_t size) {
  constexpr Combine kRest = Scaled ? portable::triad : portable::add;
  const std::size_t head = head_of(destination, size);
  kRest(destination, first, second, head);
  destination += head;
  first += head;
  second += head;
  size -= head;
  const typename Vector::Line scalar = Vector::numbers(kScalar);
  const std::size_t done =
      go_over<Vector, Pages, Prefetch>(first, size, [&](std::size_t offset, std::size_t) {
        if constexpr (Prefetch) __builtin_prefetch(second + offset + Pages * kPage);
        typename Vector::Line added = Vector::load(second + offset);
        if constexpr (Scaled) added = Vector::product(added, scalar);
        put<Vector, store>(destination + offset, Vector::sum(Vector::load(first + offset), added));
      });
  kRest(destination + done, first + done, second + done, size - done);
  if constexpr (store == Store::Streaming) Vector::fence();
}

template <class Vector>
inline constexpr Variant<Read> kReads[] = {
    {"plain", read<typename Vector::Register, kLinear, false>, false},
    {"plain-1", read<Vector, 1, false>, false},
    {"plain", read<Vector, 1, true>, true},
    {"plain-2", read<Vector, 2, false>, false},
    {"plain-2", read<Vector, 2, true>, true},
    {"plain-4", read<Vector, 4, false>, false},
    {"plain-4", read<Vector, 4, true>, true},
    {"plain-8", read<Vector, 8, false>, false},
    {"plain-8", read<Vector, 8, true>, true},
};

template <class Vector>
inline constexpr Variant<Write> kWrites[] = {
    {"plain", write<typename Vector::Register, Store::Plain, kLinear>, false},
    {"plain-2", write<Vector, Store::Plain, 2>, false},
    {"plain-4", write<Vector, Store::Plain, 4>, false},
    {"plain-8", write<Vector, Store::Plain, 8>, false},
    {"nt-1", write<Vector, Store::Streaming, 1>, false},
    {"nt-2", write<Vector, Store::Streaming, 2>, false},
    {"nt-4", write<Vector, Store::Streaming, 4>, false},
    {"nt-8", write<Vector, Store::Streaming, 8>, false},
};

// What moves bytes from arrays to another, by how it stores, walks and prefetches.
struct Copies {
  template <class Vector, Store store, std::size_t Pages, bool Prefetch>
  static constexpr Copy kernel = copy<Vector, store, Pages, Prefetch>;
};
struct Scales {
  template <class Vector, Store store, std::size_t Pages, bool Prefetch>
  static constexpr Scale kernel = scale<Vector, store, Pages, Prefetch>;
};
template <bool Scaled>
struct Combinations {
  template <class Vector, Store store, std::size_t Pages, bool Prefetch>
  static constexpr Combine kernel = combine<Vector, Scaled, store, Pages, Prefetch>;
};

template <class Function, class Moves, class Vector>
inline constexpr Variant<Function> kMoves[] = {
    {"plain", Moves::template kernel<typename Vector::Register, Store::Plain, kLinear, false>,
     false},
    {"plain", Moves::template kernel<Vector, Store::Plain, 1, true>, true},
    {"plain-2", Moves::template kernel<Vector, Store::Plain, 2, false>, false},
    {"plain-2", Moves::template kernel<Vector, Store::Plain, 2, true>, true},
    {"plain-4", Moves::template kernel<Vector, Store::Plain, 4, false>, false},
    {"plain-4", Moves::template kernel<Vector, Store::Plain, 4, true>, true},
    {"plain-8", Moves::template kernel<Vector, Store::Plain, 8, false>, false},
    {"plain-8", Moves::template kernel<Vector, Store::Plain, 8, true>, true},
    {"nt-1", Moves::template kernel<Vector, Store::Streaming, 1, false>, false},
    {"nt-1", Moves::template kernel<Vector, Store::Streaming, 1, true>, true},
    {"nt-2", Moves::template kernel<Vector, Store::Streaming, 2, false>, false},
    {"nt-2", Moves::template kernel<Vector, Store::Streaming, 2, true>, true},
    {"nt-4", Moves::template kernel<Vector, Store::Streaming, 4, false>, false},
    {"nt-4", Moves::template kernel<Vector, Store::Streaming, 4, true>, true},
    {"nt-8", Moves::template kernel<Vector, Store::Streaming, 8, false>, false},
    {"nt-8", Moves::template kernel<Vector, Store::Streaming, 8, true>, true},
};

template <class Function, std::size_t Count>
constexpr Table<Function> table_of(const Variant<Function> (&variants)[Count]) {
  return {variants, Count};
}

template <class Vector>
constexpr Unit unit_of() {
  return {table_of(kReads<Vector>),
          table_of(kWrites<Vector>),
          table_of(kMoves<Copy, Copies, Vector>),
          table_of(kMoves<Scale, Scales, Vector>),
          table_of(kMoves<Combine, Combinations<false>, Vector>),
          table_of(kMoves<Combine, Combinations<true>, Vector>)};
}

}  // namespace linkgauge
