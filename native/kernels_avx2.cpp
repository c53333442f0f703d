#include "variants.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include "vector_kernels.hpp"

namespace linkgauge {

namespace {

struct Avx2 {
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
    return {_mm256_xor_si256(left.low, right.low), _mm256_xor_si256(left.high, right.high)};
  }
  static std::uint64_t fold(Line line) {
    std::uint64_t words[4];
    const __m256i both = _mm256_xor_si256(line.low, line.high);
    __builtin_memcpy(words, &both, sizeof words);
    return words[0] ^ words[1] ^ words[2] ^ words[3];
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

constinit const Unit kAvx2 = unit_of<Avx2>();

}  // namespace linkgauge

#endif
