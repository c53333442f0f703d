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
// Stores `word` again and again from `destination` on, the tail its low bytes.
using Write = void (*)(std::byte* destination, std::size_t size, std::uint64_t word);
using Copy = void (*)(std::byte* destination, const std::byte* source, std::size_t size);

struct Kernels {
  Read read;
  Write write;
  Copy copy;
};

// Whether stores should pass the caches by: when the bytes that a job touches (`footprint`: a
// copy's source and destination both) are more than the last-level caches behind its `cpus` can
// hold. Below that, lines stay cached from one loop to the next and ordinary stores are faster;
// above, an ordinary store first reads the line that it is about to overwrite, a third more
// traffic.
bool streams(std::size_t footprint, std::span<const int> cpus);

// Kernels that are nowhere far from the fastest, for whoever has not measured. `streaming` asks for
// stores that pass the caches by.
Kernels kernels_for(bool streaming);

// The names of an operation's kernels that this CPU runs.
std::vector<std::string> kernel_names(Op op);

// The kernel of each operation: the one of this name for `op`. Throws std::invalid_argument where
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
