// AVX2 kernels. Compiled for the baseline CPU but for these functions, and called only where the
// CPU has AVX2. AVX-512 was no faster: memory is the limit, not the width of a register.
#include "kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "slice.hpp"

#define LINKGAUGE_AVX2 __attribute__((target("avx2")))

namespace linkgauge::avx2 {

namespace {

constexpr std::size_t kVector = sizeof(__m256i);
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;  // streamed side by side: see stream_copy
constexpr std::size_t kBlock = kPages * kPage;
constexpr std::size_t kReadAhead = 2048;

// Bytes up to the first cache line boundary, at most `size`.
std::size_t head_of(const std::byte* destination, std::size_t size) {
  const std::size_t past = std::bit_cast<std::uintptr_t>(destination) % kCacheLine;
  return std::min(size, (kCacheLine - past) % kCacheLine);
}

LINKGAUGE_AVX2 inline __m256i load(const std::byte* source) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
}

LINKGAUGE_AVX2 inline void store(std::byte* destination, __m256i vector) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(destination), vector);
}

LINKGAUGE_AVX2 inline void stream(std::byte* destination, __m256i vector) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), vector);
}

LINKGAUGE_AVX2 inline void stream_line(std::byte* destination, const std::byte* source) {
  const __m256i low = load(source);
  const __m256i high = load(source + kVector);
  stream(destination, low);
  stream(destination + kVector, high);
}

LINKGAUGE_AVX2 inline __m256i broadcast(std::uint64_t word) {
  return _mm256_set1_epi64x(std::bit_cast<long long>(word));
}

LINKGAUGE_AVX2 inline std::uint64_t xor_of_words(__m256i vector) {
  std::uint64_t words[4];
  std::memcpy(words, &vector, sizeof words);
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

}  // namespace

LINKGAUGE_AVX2 std::uint64_t read(const std::byte* source, std::size_t size) {
  constexpr std::size_t kStep = 4 * kCacheLine;
  __m256i sums[8];  // one for each load of a step, so that none waits for another
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (; size >= kStep; source += kStep, size -= kStep) {
    for (std::size_t i = 0; i < 4; ++i) {
      // Past the end this asks for a line that is never read, which is harmless.
      _mm_prefetch(reinterpret_cast<const char*>(source) + kReadAhead + i * kCacheLine,
                   _MM_HINT_T0);
    }
    for (std::size_t i = 0; i < 8; ++i) {
      sums[i] = _mm256_xor_si256(sums[i], load(source + i * kVector));
    }
  }
  for (std::size_t i = 1; i < 8; ++i) sums[0] = _mm256_xor_si256(sums[0], sums[i]);
  return xor_of_words(sums[0]) ^ portable::read(source, size);
}

LINKGAUGE_AVX2 void write(std::byte* destination, std::size_t size, std::uint64_t word) {
  constexpr std::size_t kStep = 4 * kVector;
  const __m256i words = broadcast(word);
  for (; size >= kStep; destination += kStep, size -= kStep) {
    for (std::size_t i = 0; i < 4; ++i) store(destination + i * kVector, words);
  }
  portable::write(destination, size, word);
}

LINKGAUGE_AVX2 void stream_write(std::byte* destination, std::size_t size, std::uint64_t word) {
  const std::size_t head = head_of(destination, size);
  portable::write(destination, head, word);
  destination += head;
  size -= head;
  const std::uint64_t turned = std::rotr(word, static_cast<int>(head % sizeof word * 8));
  const __m256i words = broadcast(turned);
  for (; size >= kCacheLine; destination += kCacheLine, size -= kCacheLine) {
    stream(destination, words);
    stream(destination + kVector, words);
  }
  portable::write(destination, size, turned);
  _mm_sfence();  // the stores are done before the clock is read
}

// Walks several pages side by side, a cache line of each in turn, and meanwhile prefetches the same
// lines of the next block: more misses are in flight than one stream's hardware prefetcher asks
// for, on machines where that is the limit. Elsewhere it is as fast as a single stream.
LINKGAUGE_AVX2 void stream_copy(std::byte* destination, const std::byte* source, std::size_t size) {
  const std::size_t head = head_of(destination, size);
  std::memcpy(destination, source, head);
  destination += head;
  source += head;
  size -= head;
  for (; size >= kBlock; destination += kBlock, source += kBlock, size -= kBlock) {
    for (std::size_t line = 0; line < kPage; line += kCacheLine) {
      for (std::size_t page = line; page < kBlock; page += kPage) {
        _mm_prefetch(reinterpret_cast<const char*>(source) + kBlock + page, _MM_HINT_T0);
        stream_line(destination + page, source + page);
      }
    }
  }
  for (; size >= kCacheLine; destination += kCacheLine, source += kCacheLine, size -= kCacheLine) {
    stream_line(destination, source);
  }
  std::memcpy(destination, source, size);
  _mm_sfence();  // the stores are done before the clock is read
}

}  // namespace linkgauge::avx2

#endif
