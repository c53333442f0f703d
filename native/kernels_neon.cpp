#include "variants.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "vector_kernels.hpp"

namespace linkgauge {

namespace {

struct NeonRegister {
  using Line = uint64x2_t;

  static float64x2_t number(Line line) { return vreinterpretq_f64_u64(line); }
  static Line words(float64x2_t numbers) { return vreinterpretq_u64_f64(numbers); }
  static Line load(const std::byte* source) {
    return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(source)));
  }
  static void store(std::byte* destination, Line line) {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(destination), vreinterpretq_u8_u64(line));
  }
  static Line broadcast(std::uint64_t word) { return vdupq_n_u64(word); }
  static Line exclusive_or(Line left, Line right) { return veorq_u64(left, right); }
  static std::uint64_t fold(Line line) { return vgetq_lane_u64(line, 0) ^ vgetq_lane_u64(line, 1); }
  static Line numbers(double value) { return words(vdupq_n_f64(value)); }
  static Line product(Line left, Line right) {
    return words(vmulq_f64(number(left), number(right)));
  }
  static Line sum(Line left, Line right) { return words(vaddq_f64(number(left), number(right))); }
};

struct Neon {
  using Register = NeonRegister;
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
  static Line numbers(double value) {
    const uint64x2_t same = Register::numbers(value);
    return {{same, same, same, same}};
  }
  static Line product(Line left, Line right) {
    for (int i = 0; i < 4; ++i) left.part[i] = Register::product(left.part[i], right.part[i]);
    return left;
  }
  static Line sum(Line left, Line right) {
    for (int i = 0; i < 4; ++i) left.part[i] = Register::sum(left.part[i], right.part[i]);
    return left;
  }
  static std::uint64_t fold(Line line) {
    const uint64x2_t both =
        veorq_u64(veorq_u64(line.part[0], line.part[1]), veorq_u64(line.part[2], line.part[3]));
    return Register::fold(both);
  }
  static void fence() { asm volatile("dmb ishst" ::: "memory"); }
};

}  // namespace

constinit const Unit kNeon = unit_of<Neon>();

}  // namespace linkgauge

#endif
