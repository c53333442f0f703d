// Timed calls of C functions by their addresses, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace linkgauge {

inline constexpr std::size_t kMostArguments = 11;

// A call of `int function(...)` with these arguments, integers and pointers.
struct Call {
  std::uintptr_t function;
  std::vector<std::uint64_t> arguments;
};

struct Iterations {
  // Nanoseconds since the first iteration began, by CLOCK_MONOTONIC: 0, and the end of each.
  std::vector<std::int64_t> ends;
  int status = 0;          // of the first call that failed; 0 if none did
  std::size_t failed = 0;  // and its place among the calls of an iteration
};

// Makes these calls in their order `count` times, then those of `last` once, whose end is one more
// if there are any; stops at the first that does not return 0. The clock is read once an iteration.
// The places of `last` follow those of `calls`. Throws std::invalid_argument for a null function,
// too many arguments, no calls, or a count of 0.
Iterations time_iterations(std::span<const Call> calls, std::size_t count,
                           std::span<const Call> last = {});

// A call of what does nothing: an iteration of it costs what the loop itself does.
Call nothing();

// What host and device say to each other through words that both see, as functions to be called.
inline constexpr int kTookTooLong = 1;
// Stores *value in *word; returns 0.
int store_word(std::uint64_t* word, const std::uint64_t* value);
// Waits until *word is *value, then adds 1 to *value. Returns 0, or kTookTooLong after `limit`
// nanoseconds.
int await_word(std::uint64_t* word, std::uint64_t* value, std::uint64_t limit);

// What ranks say to each other over sockets, as functions to be called.
inline constexpr int kEnded = -1;
// Sends all of it over a socket that blocks. Returns 0, or the errno of what went wrong; EAGAIN if
// the socket's own timeout (SO_SNDTIMEO) passes without a byte.
int send_all(int socket, const char* data, std::size_t size);
// Receives all of it. Returns 0, kEnded if the other end closes before, or an errno.
int receive_all(int socket, char* data, std::size_t size);

}  // namespace linkgauge
