#include "variants.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "vector_kernels.hpp"

namespace linkgauge {

namespace {

struct Neon {
  struct Line {
    uint64x2_t part[4];
  };

  static Line load(const std::byte* source) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(source);
    Line line;
    for (int i = 0; i < 4; ++i) line.part[i] = vreinterpretq_u64_u8(vld1q_u8(bytes + 16 * i));
    return line;
  }
  static void store(std::byte* destination, Line line) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(destination);
    for (int i = 0; i < 4; ++i) vst1q_u8(bytes + 16 * i, vreinterpretq_u8_u64(line.part[i]));
  }
  static void stream(std::byte* destination, Line line) {
    asm volatile(
        "stnp %q[a], %q[b], [%[to]]\n\t"
        "stnp %q[c], %q[d], [%[to], #32]"
        :
        : [to] "r"(destination), [a] "w"(line.part[0]), [b] "w"(line.part[1]),
          [c] "w"(line.part[2]), [d] "w"(line.part[3])
        : "memory");
  }
  static Line broadcast(std::uint64_t word) {
    const uint64x2_t words = vdupq_n_u64(word);
    return {{words, words, words, words}};
  }
  static Line exclusive_or(Line left, Line right) {
    for (int i = 0; i < 4; ++i) left.part[i] = veorq_u64(left.part[i], right.part[i]);
    return left;
  }
  static std::uint64_t fold(Line line) {
    const uint64x2_t both =
        veorq_u64(veorq_u64(line.part[0], line.part[1]), veorq_u64(line.part[2], line.part[3]));
    return vgetq_lane_u64(both, 0) ^ vgetq_lane_u64(both, 1);
  }
  static void fence() { asm volatile("dmb ishst" ::: "memory"); }
};

}  // namespace

constinit const Unit kNeon = unit_of<Neon>();

}  // namespace linkgauge

#endif
