// The loops that move bytes: what a host benchmark times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace linkgauge {

// The last three compute with 64-bit floating-point numbers, as STREAM does.
enum class Op { Read, Write, Copy, Scale, Add, Triad };

constexpr bool computes(Op op) { return op == Op::Scale || op == Op::Add || op == Op::Triad; }
constexpr bool has_two_sources(Op op) { return op == Op::Add || op == Op::Triad; }
// What scale and triad multiply by: STREAM's.
constexpr double kScalar = 3.0;

// Each handles any size and any alignment, and touches no byte outside its ranges.

// Xor of all 64-bit words from `source` on, a shorter tail zero-extended.
using Read = std::uint64_t (*)(const std::byte* source, std::size_t size);
// Stores `word` repeatedly from `destination` on; the tail gets its low bytes.
using Write = void (*)(std::byte* destination, std::size_t size, std::uint64_t word);
using Copy = void (*)(std::byte* destination, const std::byte* source, std::size_t size);
// Stores kScalar times each number. Of this and Combine, sizes and the destination's address are
// multiples of 8 bytes.
using Scale = Copy;
// Stores the sum of each number of `first` and that of `second`, times kScalar in a triad.
using Combine = void (*)(std::byte* destination, const std::byte* first, const std::byte* second,
                         std::size_t size);

struct Kernels {
  Read read;
  Write write;
  Copy copy;
  Scale scale;
  Combine add;
  Combine triad;
};

// A kernel's work: of Combine, the second array is `second`.
struct Work {
  std::byte* destination;
  const std::byte* source;
  const std::byte* second;
  std::size_t size;
  std::uint64_t word;

  // `bytes` of it from `offset` on, a multiple of 8 bytes.
  Work part(std::size_t offset, std::size_t bytes) const {
    return {destination + offset, source + offset, second + offset, bytes, word};
  }
};

// Does the work once. Returns what a read returns, else 0.
std::uint64_t carry_out(const Kernels& kernels, Op op, const Work& work);

// Whether stores should bypass the caches: if the bytes that a job touches (`footprint`: both
// all arrays of the operation) exceed the last-level caches of its `cpus`. Below that, lines
// stay cached from one loop to the next and ordinary stores are faster; above, an ordinary store
// first reads the line that it is about to overwrite, a third more traffic.
bool streams(std::size_t footprint, std::span<const int> cpus);

// Defaults without measuring: kernels that are close to the fastest on every CPU. `streaming`
// selects stores that bypass the caches.
Kernels kernels_for(bool streaming);

// The names of an operation's kernels that this CPU runs.
std::vector<std::string> kernel_names(Op op);

// The kernel of each operation: for `op`, the one of this name. Throws std::invalid_argument if
// this CPU runs none of that name.
Kernels kernels_named(Op op, const std::string& name);

// The name of the kernel that kernels_for() gives.
std::string default_kernel(Op op, bool streaming);

// The name of the kernel that walks linearly with ordinary loads and stores: what a compiler makes
// of STREAM's loops.
std::string linear_kernel(Op op);

namespace portable {
std::uint64_t read(const std::byte* source, std::size_t size);
void write(std::byte* destination, std::size_t size, std::uint64_t word);
void copy(std::byte* destination, const std::byte* source, std::size_t size);
// A loop of ordinary loads and stores, which the C library's copy may not be.
void copy_linear(std::byte* destination, const std::byte* source, std::size_t size);
void scale(std::byte* destination, const std::byte* source, std::size_t size);
void add(std::byte* destination, const std::byte* first, const std::byte* second, std::size_t size);
void triad(std::byte* destination, const std::byte* first, const std::byte* second,
           std::size_t size);
}  // namespace portable

}  // namespace linkgauge
