#include "content.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "affinity.hpp"
#include "slice.hpp"

namespace linkgauge {

namespace {

constexpr int kTypes = 12;
constexpr std::size_t kGranule = 4096;  // elements of a thread's share: whole pages

template <int Code>
void fill_slice(std::byte* address, Slice part, const content::Content& of, std::uint64_t rank) {
  using Type = content::Type<Code>;
  for (std::size_t at = part.offset; at < part.offset + part.size; ++at) {
    const typename Type::T value = Type::Format::from(content::sent(of, rank, at));
    std::memcpy(address + at * sizeof(value), &value, sizeof(value));
  }
}

template <int Code>
Wrong count_slice(const std::byte* address, Slice part, const content::Content& of,
                  const content::Origin& origin) {
  using Type = content::Type<Code>;
  Wrong wrong;
  for (std::size_t at = part.offset; at < part.offset + part.size; ++at) {
    typename Type::T value;
    std::memcpy(&value, address + at * sizeof(value), sizeof(value));
    if (!content::is_wrong<typename Type::T, typename Type::Format>(value, of, origin, at)) {
      continue;
    }
    if (wrong.count++ == 0) wrong.first = at;
  }
  return wrong;
}

template <int... Code>
constexpr auto fillers(std::integer_sequence<int, Code...>) {
  return std::array{&fill_slice<Code>...};
}

template <int... Code>
constexpr auto counters(std::integer_sequence<int, Code...>) {
  return std::array{&count_slice<Code>...};
}

constexpr auto kFill = fillers(std::make_integer_sequence<int, kTypes>());
constexpr auto kCount = counters(std::make_integer_sequence<int, kTypes>());

std::size_t known(int type) {
  if (type < 0 || type >= kTypes) throw std::invalid_argument("unknown type of numbers");
  return static_cast<std::size_t>(type);
}

}  // namespace

void fill_content(std::byte* address, std::size_t count, int type, const content::Content& of,
                  std::uint64_t rank, std::span<const int> cpus) {
  const auto fill = kFill[known(type)];
  run_on(cpus,
         [&](std::size_t i) { fill(address, slice(count, cpus.size(), i, kGranule), of, rank); });
}

Wrong count_wrong(const std::byte* address, std::size_t count, int type, const content::Content& of,
                  const content::Origin& origin, std::span<const int> cpus) {
  const auto count_in = kCount[known(type)];
  std::vector<Wrong> found(cpus.size());
  run_on(cpus, [&](std::size_t i) {
    found[i] = count_in(address, slice(count, cpus.size(), i, kGranule), of, origin);
  });
  Wrong all;
  for (const Wrong& own : found) {
    if (own.count != 0 && all.count == 0) all.first = own.first;  // slices are in order
    all.count += own.count;
  }
  return all;
}

}  // namespace linkgauge
