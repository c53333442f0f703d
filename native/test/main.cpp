// Runs the tests whose names contain an argument, all without one: "ok NAME", "skip NAME: why" or
// "FAIL NAME: what", then their number. The exit status is 1 if one failed or none ran.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "check.hpp"

namespace linkgauge::test {

namespace {

constexpr std::size_t kGuard = 256;
constexpr std::size_t kAligned = 4096;
constexpr std::byte kUntouched{0xA5};

struct Registered {
  const char* name;
  void (*body)();
};

std::vector<Registered>& tests() {
  static std::vector<Registered> all;
  return all;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) found.push_back(cpu);
  }
  return found;
}

}  // namespace

Test::Test(const char* name, void (*body)()) { tests().push_back({name, body}); }

void check(bool holds, const std::string& about, std::source_location where) {
  if (holds) return;
  const std::string file = where.file_name();
  const std::string line = file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
  throw std::logic_error(about.empty() ? line : line + ": " + about);
}

const std::vector<int>& cpus() {
  static const std::vector<int> found = allowed_cpus();
  return found;
}

Arena::Arena(std::size_t size, std::size_t offset)
    : whole_(size + offset + 2 * kGuard + kAligned, kUntouched), size_(size) {
  const auto start = reinterpret_cast<std::uintptr_t>(whole_.data()) + kGuard;
  begin_ = kGuard + (kAligned - start % kAligned) % kAligned + offset;
}

bool Arena::is_guarded() const {
  const auto untouched = [](std::byte each) { return each == kUntouched; };
  const auto begin = whole_.begin() + static_cast<std::ptrdiff_t>(begin_);
  return std::all_of(whole_.begin(), begin, untouched) &&
         std::all_of(begin + static_cast<std::ptrdiff_t>(size_), whole_.end(), untouched);
}

std::uint64_t word(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t x = (index + seed * 0xD1B54A32D192ED03) * 0x9E3779B97F4A7C15;
  return x ^ (x >> 29);
}

std::vector<std::byte> words(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> found(size + sizeof(std::uint64_t));
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t one = word(seed, at / sizeof one);
    std::memcpy(found.data() + at, &one, sizeof one);
  }
  found.resize(size);
  return found;
}

namespace {

enum class Outcome { Passed, Failed, Skipped };

Outcome run(const Registered& test) {
  try {
    test.body();
  } catch (const Skip& reason) {
    std::printf("skip %s: %s\n", test.name, reason.what());
    return Outcome::Skipped;
  } catch (const std::exception& error) {
    std::printf("FAIL %s: %s\n", test.name, error.what());
    return Outcome::Failed;
  }
  std::printf("ok %s\n", test.name);
  return Outcome::Passed;
}

}  // namespace

}  // namespace linkgauge::test

int main(int count, char** arguments) {
  using namespace linkgauge::test;
  int passed = 0, failed = 0, skipped = 0;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a crash tells what came before it
  for (const auto& test : tests()) {
    if (count > 1 && !std::strstr(test.name, arguments[1])) continue;
    const Outcome outcome = run(test);
    passed += outcome == Outcome::Passed;
    failed += outcome == Outcome::Failed;
    skipped += outcome == Outcome::Skipped;
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed > 0 || passed == 0 ? 1 : 0;
}
