// What the data of collectives hold, and what has to come of them. For kernels and for the host.
#pragma once

#ifdef __CUDACC__
#define LINKGAUGE_ANYWHERE __host__ __device__
#else
#define LINKGAUGE_ANYWHERE
#endif

namespace content {

typedef unsigned long long u64;

// In the order of model/collective.py.
enum Reduction { kNone = -1, kSum, kProduct, kMaximum, kMinimum, kAverage, kScaledSum };

// At each index `share` of the ranks have a number from 0 to `largest`, and the others 0; for a
// product they have 1 or 2, and the others 1.
struct Content {
  u64 seed;
  u64 ranks;
  u64 share;
  u64 largest;
  int reduction;
  double tolerance;  // relative
};

// Element i comes from element `base + i % chunk` of rank `first + i / chunk`; of a reduction, from
// element `base + i` of all ranks.
struct Origin {
  u64 first;
  u64 chunk;
  u64 base;
};

LINKGAUGE_ANYWHERE inline u64 mixed(u64 rank, u64 index, u64 seed) {
  u64 x = index * 0x9E3779B97F4A7C15ull + rank * 0xD1B54A32D192ED03ull + seed;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return (x ^ x >> 31) >> 32;
}

// What rank has at an index.
LINKGAUGE_ANYWHERE inline double sent(const Content& of, u64 rank, u64 index) {
  const u64 own = mixed(rank, index, of.seed);
  const bool part = of.share >= of.ranks ||
                    (mixed(of.ranks, index, of.seed) + rank) % of.ranks < of.share;
  if (of.reduction == kProduct) return part && own % 2 == 1 ? 2.0 : 1.0;
  return part ? static_cast<double>(own % (of.largest + 1)) : 0.0;
}

// What a scaled sum multiplies a rank's numbers by.
LINKGAUGE_ANYWHERE inline double scale_of(u64 rank) { return static_cast<double>(1 + rank % 2); }

LINKGAUGE_ANYWHERE inline double reduced(const Content& of, u64 index) {
  double result = of.reduction == kProduct ? 1.0 : sent(of, 0, index);
  for (u64 rank = of.reduction == kProduct ? 0 : 1; rank < of.ranks; ++rank) {
    const double own = sent(of, rank, index);
    switch (of.reduction) {
      case kProduct: result *= own; break;
      case kMaximum: result = own > result ? own : result; break;
      case kMinimum: result = own < result ? own : result; break;
      case kScaledSum: result += own * scale_of(rank); break;
      default: result += own;
    }
  }
  return of.reduction == kAverage ? result / static_cast<double>(of.ranks) : result;
}

// What has to arrive at an index.
LINKGAUGE_ANYWHERE inline double expected(const Content& of, const Origin& origin, u64 index) {
  if (of.reduction != kNone) return reduced(of, origin.base + index);
  return sent(of, origin.first + index / origin.chunk, origin.base + index % origin.chunk);
}

// A floating-point format of `Exponent` and `Mantissa` bits, as whole numbers that it holds exactly.
template <typename Bits, int Exponent, int Mantissa>
struct Small {
  static constexpr int kBias = (1 << (Exponent - 1)) - 1;

  LINKGAUGE_ANYWHERE static Bits from(double value) {
    if (value == 0) return 0;
    u64 whole = static_cast<u64>(value);
    int power = 0;
    while (whole >> (power + 1)) ++power;
    const u64 rest = whole - (1ull << power);
    const u64 fraction =
        power <= Mantissa ? rest << (Mantissa - power) : rest >> (power - Mantissa);
    return static_cast<Bits>(static_cast<u64>(power + kBias) << Mantissa | fraction);
  }

  LINKGAUGE_ANYWHERE static double to(Bits bits) {
    const u64 all = bits;
    if ((all & ((1ull << (Exponent + Mantissa)) - 1)) == 0) return 0;
    const int power = static_cast<int>(all >> Mantissa & ((1u << Exponent) - 1));
    double value = static_cast<double>(all & ((1ull << Mantissa) - 1)) / (1ull << Mantissa);
    value = power == 0 ? 2 * value : 1 + value;
    for (int at = power; at < kBias; ++at) value /= 2;
    for (int at = kBias; at < power; ++at) value *= 2;
    return all >> (Exponent + Mantissa) & 1 ? -value : value;
  }
};

template <typename T>
struct Plain {
  LINKGAUGE_ANYWHERE static T from(double value) { return static_cast<T>(value); }
  LINKGAUGE_ANYWHERE static double to(T value) { return static_cast<double>(value); }
};

// By the codes of NCCL's types.
template <int Code>
struct Type;
template <> struct Type<0> { using T = signed char; using Format = Plain<T>; };
template <> struct Type<1> { using T = unsigned char; using Format = Plain<T>; };
template <> struct Type<2> { using T = int; using Format = Plain<T>; };
template <> struct Type<3> { using T = unsigned; using Format = Plain<T>; };
template <> struct Type<4> { using T = long long; using Format = Plain<T>; };
template <> struct Type<5> { using T = u64; using Format = Plain<T>; };
template <> struct Type<6> { using T = unsigned short; using Format = Small<T, 5, 10>; };
template <> struct Type<7> { using T = float; using Format = Plain<T>; };
template <> struct Type<8> { using T = double; using Format = Plain<T>; };
template <> struct Type<9> { using T = unsigned short; using Format = Small<T, 8, 7>; };
template <> struct Type<10> { using T = unsigned char; using Format = Small<T, 4, 3>; };
template <> struct Type<11> { using T = unsigned char; using Format = Small<T, 5, 2>; };

// Whether an element is wrong. Averages of whole numbers are cut off.
template <typename T, typename Format>
LINKGAUGE_ANYWHERE inline bool is_wrong(T found, const Content& of, const Origin& origin,
                                        u64 index) {
  const double wanted = expected(of, origin, index);
  const double off = Format::to(found) - wanted;
  if (of.tolerance > 0) return !(off <= of.tolerance * wanted && -off <= of.tolerance * wanted);
  if (of.reduction == kAverage) return found != Format::from(wanted);
  return !(off == 0);
}

}  // namespace content
