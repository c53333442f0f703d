// What the tests of native/ are written with. They need neither Python nor any library, so that
// they run wherever a compiler or an emulator of the CPU is.
#pragma once

#include <cstddef>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

namespace linkgauge::test {

// Thrown by a test that this system refuses: a skip, with the reason.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ends the test unless the condition holds. `about` says of which case.
void check(bool holds, const std::string& about = "",
           std::source_location where = std::source_location::current());

// Whether the call throws an Error.
template <class Error>
bool throws(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

// Registers a test for main(): a global of each.
struct Test {
  Test(const char* name, void (*body)());
};

// The CPUs that this process may use.
const std::vector<int>& cpus();

// Bytes at any alignment between guards. Their start is `offset` past a multiple of 4 KiB.
class Arena {
 public:
  Arena(std::size_t size, std::size_t offset);
  std::byte* begin() { return whole_.data() + begin_; }
  std::size_t size() const { return size_; }
  bool is_guarded() const;

 private:
  std::vector<std::byte> whole_;
  std::size_t begin_;
  std::size_t size_;
};

// Word i of a pattern by its definition (pattern.hpp), written down once more.
std::uint64_t word(std::uint64_t seed, std::uint64_t index);
// As many bytes of words 0, 1, 2 …
std::vector<std::byte> words(std::size_t size, std::uint64_t seed);

}  // namespace linkgauge::test
