// The kernels of one vector unit, as tables: plain values, so that no code compiled for the unit
// runs before the CPU is known to have it.
#pragma once

#include <cstddef>

#include "kernels.hpp"

namespace linkgauge {

template <class Function>
struct Variant {
  const char* name;
  Function function;
  bool prefetches;
};

template <class Function>
struct Table {
  const Variant<Function>* variants;
  std::size_t count;
};

struct Unit {
  Table<Read> reads;
  Table<Write> writes;
  Table<Copy> copies;
  Table<Scale> scales;
  Table<Combine> adds;
  Table<Combine> triads;
};

#if defined(__x86_64__)
extern const Unit kAvx2;
extern const Unit kAvx512;
#elif defined(__aarch64__)
extern const Unit kNeon;
#endif

}  // namespace linkgauge
