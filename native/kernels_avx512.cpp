#include "variants.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include "vector_kernels.hpp"

namespace linkgauge {

namespace {

struct Avx512 {
  using Line = __m512i;
  using Register = Avx512;

  static Line load(const std::byte* source) { return _mm512_loadu_si512(source); }
  static void store(std::byte* destination, Line line) { _mm512_storeu_si512(destination, line); }
  static void stream(std::byte* destination, Line line) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(destination), line);
  }
  static Line broadcast(std::uint64_t word) {
    return _mm512_set1_epi64(static_cast<long long>(word));
  }
  static Line exclusive_or(Line left, Line right) { return _mm512_xor_si512(left, right); }
  static Line numbers(double value) { return _mm512_castpd_si512(_mm512_set1_pd(value)); }
  static Line product(Line left, Line right) {
    return _mm512_castpd_si512(
        _mm512_mul_pd(_mm512_castsi512_pd(left), _mm512_castsi512_pd(right)));
  }
  static Line sum(Line left, Line right) {
    return _mm512_castpd_si512(
        _mm512_add_pd(_mm512_castsi512_pd(left), _mm512_castsi512_pd(right)));
  }
  static std::uint64_t fold(Line line) {
    std::uint64_t words[8];
    __builtin_memcpy(words, &line, sizeof words);
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words) sum ^= word;
    return sum;
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

constinit const Unit kAvx512 = unit_of<Avx512>();

}  // namespace linkgauge

#endif
