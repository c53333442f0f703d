#include "variants.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include "vector_kernels.hpp"

namespace linkgauge {

namespace {

struct Avx2Register {
  using Line = __m256i;

  static Line load(const std::byte* source) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
  }
  static void store(std::byte* destination, Line line) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(destination), line);
  }
  static Line broadcast(std::uint64_t word) {
    return _mm256_set1_epi64x(static_cast<long long>(word));
  }
  static Line exclusive_or(Line left, Line right) { return _mm256_xor_si256(left, right); }
  static std::uint64_t fold(Line line) {
    std::uint64_t words[4];
    __builtin_memcpy(words, &line, sizeof words);
    return words[0] ^ words[1] ^ words[2] ^ words[3];
  }
  static Line numbers(double value) { return _mm256_castpd_si256(_mm256_set1_pd(value)); }
  static Line product(Line left, Line right) {
    return _mm256_castpd_si256(
        _mm256_mul_pd(_mm256_castsi256_pd(left), _mm256_castsi256_pd(right)));
  }
  static Line sum(Line left, Line right) {
    return _mm256_castpd_si256(
        _mm256_add_pd(_mm256_castsi256_pd(left), _mm256_castsi256_pd(right)));
  }
};

struct Avx2 {
  using Register = Avx2Register;
  struct Line {
    __m256i low, high;
  };

  static __m256i* at(std::byte* address) { return reinterpret_cast<__m256i*>(address); }
  static Line load(const std::byte* source) {
    const auto* registers = reinterpret_cast<const __m256i*>(source);
    return {_mm256_loadu_si256(registers), _mm256_loadu_si256(registers + 1)};
  }
  static void store(std::byte* destination, Line line) {
    _mm256_storeu_si256(at(destination), line.low);
    _mm256_storeu_si256(at(destination) + 1, line.high);
  }
  static void stream(std::byte* destination, Line line) {
    _mm256_stream_si256(at(destination), line.low);
    _mm256_stream_si256(at(destination) + 1, line.high);
  }
  static Line broadcast(std::uint64_t word) {
    const __m256i words = _mm256_set1_epi64x(static_cast<long long>(word));
    return {words, words};
  }
  static Line exclusive_or(Line left, Line right) {
    return {Register::exclusive_or(left.low, right.low),
            Register::exclusive_or(left.high, right.high)};
  }
  static Line numbers(double value) { return {Register::numbers(value), Register::numbers(value)}; }
  static Line product(Line left, Line right) {
    return {Register::product(left.low, right.low), Register::product(left.high, right.high)};
  }
  static Line sum(Line left, Line right) {
    return {Register::sum(left.low, right.low), Register::sum(left.high, right.high)};
  }
  static std::uint64_t fold(Line line) {
    return Register::fold(Register::exclusive_or(line.low, line.high));
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

constinit const Unit kAvx2 = unit_of<Avx2>();

}  // namespace linkgauge

#endif
