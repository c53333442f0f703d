// The loops that move bytes: what a host benchmark times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace linkgauge {

enum class Op { Read, Write, Copy };

// Each handles any size and any alignment, and touches no byte outside its ranges.

// Xor of all 64-bit words from `source` on, a shorter tail zero-extended.
using Read = std::uint64_t (*)(const std::byte* source, std::size_t size);
// Stores `word` repeatedly from `destination` on; the tail gets its low bytes.
using Write = void (*)(std::byte* destination, std::size_t size, std::uint64_t word);
using Copy = void (*)(std::byte* destination, const std::byte* source, std::size_t size);

struct Kernels {
  Read read;
  Write write;
  Copy copy;
};

// Whether stores should bypass the caches: if the bytes that a job touches (`footprint`: both
// source and destination of a copy) exceed the last-level caches of its `cpus`. Below that, lines
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

namespace portable {
std::uint64_t read(const std::byte* source, std::size_t size);
void write(std::byte* destination, std::size_t size, std::uint64_t word);
void copy(std::byte* destination, const std::byte* source, std::size_t size);
}  // namespace portable

}  // namespace linkgauge
