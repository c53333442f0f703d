#include "calls.hpp"

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace linkgauge {

namespace {

using Call = int (*)(std::uintptr_t, const std::uint64_t*);

template <std::size_t>
using Word = std::uint64_t;

// Integers and pointers take a whole register or stack slot each on all 64-bit Linux platforms: a
// function with narrower parameters reads the low bits.
template <std::size_t... I>
int call(std::uintptr_t function, const std::uint64_t* arguments, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(Word<I>...)>(function)(arguments[I]...);
}

template <std::size_t Count>
int call_with(std::uintptr_t function, const std::uint64_t* arguments) {
  return call(function, arguments, std::make_index_sequence<Count>());
}

template <std::size_t... Count>
constexpr std::array<Call, sizeof...(Count)> all(std::index_sequence<Count...>) {
  return {call_with<Count>...};
}

constexpr auto kByCount = all(std::make_index_sequence<kMostArguments + 1>());

}  // namespace

Calls time_calls(std::uintptr_t function, std::span<const std::uint64_t> arguments,
                 std::size_t count) {
  if (function == 0) throw std::invalid_argument("no function to call");
  if (arguments.size() > kMostArguments) throw std::invalid_argument("too many arguments");
  if (count == 0) throw std::invalid_argument("no calls to time");
  const Call once = kByCount[arguments.size()];
  Calls calls;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t number = 0; number < count && calls.status == 0; ++number) {
    calls.status = once(function, arguments.data());
  }
  calls.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return calls;
}

}  // namespace linkgauge
