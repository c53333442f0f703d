// Back-to-back timed calls of a C function by its address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace linkgauge {

inline constexpr std::size_t kMostArguments = 11;

struct Calls {
  double seconds = 0;  // of all calls, by CLOCK_MONOTONIC
  int status = 0;      // of the first call that failed; 0 if none did
};

// Calls `int function(...)` `count` times with these arguments, integers and pointers, and stops
// at the first call that does not return 0. Throws std::invalid_argument for a null function, too
// many arguments, or a count of 0.
Calls time_calls(std::uintptr_t function, std::span<const std::uint64_t> arguments,
                 std::size_t count);

}  // namespace linkgauge
