// The rate at which the kernel hands out fresh memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace linkgauge {

// Gives the pages of a range back to the kernel, then has one thread on each of `cpus` store a word
// in each page of its share: every page is faulted in and zeroed anew. `batches` batches of `loops`
// such rounds. Returns zero and the seconds of faulting that each batch ended at, added up: from
// each round's first thread's start to its last thread's end, without giving pages back. The
// content of the range is lost.
//
// Throws std::invalid_argument for no CPU, no size, or no loops or batches, std::system_error if
// the pages cannot be given back (locked ones cannot) or a thread cannot be started or pinned, and
// std::runtime_error if fresh memory was not zero.
std::vector<double> first_touch(std::byte* address, std::size_t size, std::span<const int> cpus,
                                std::uint64_t loops, std::uint64_t batches);

}  // namespace linkgauge
