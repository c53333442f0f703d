// Pointer chase: one work-item follows a ring through memory, each load waiting for the one before.
//
// A line of memory holds, in its first 8 bytes, the offset of the next one from the buffer's start.
// It is no address: OpenCL lets a runtime place a buffer anew for each launch.

#define ROUNDS 4
#define GOLDEN 0x9E3779B97F4A7C15UL
#define FACTOR 0xBF58476D1CE4E5B9UL

// As SplitMix64 does it (Steele, Lea, Flood, OOPSLA 2014).
ulong mixed(ulong x) {
  x = (x ^ (x >> 30)) * FACTOR;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBUL;
  return x ^ (x >> 31);
}

// A bijection of the numbers below 2^bits: rounds of a sum, a product with an odd number and a shift
// by at least half of the bits, each of which can be undone (as native/chase.cpp has it).
ulong shuffled(ulong x, ulong seed, uint bits) {
  const ulong mask = (1UL << bits) - 1;
  const uint by = (bits + 1) / 2;
  for (int round = 0; round < ROUNDS; ++round) {
    seed = mixed(seed + GOLDEN);
    x = (x + seed) * FACTOR & mask;
    x ^= x >> by;
  }
  return x;
}

// The line at `place` in the ring's order. Of a number of lines that is no power of two, those
// beyond are passed over (cycle walking; Black, Rogaway, CT-RSA 2002).
ulong line_at(ulong place, ulong lines, ulong seed, uint bits) {
  do place = shuffled(place, seed, bits);
  while (place >= lines);
  return place;
}

// Lays one ring over all lines, in an order without pattern that depends on the seed.
__kernel void lay_ring(__global uchar *buffer, ulong lines, ulong stride, ulong seed,
                       uint bits) {
  for (ulong i = get_global_id(0); i < lines; i += get_global_size(0)) {
    const ulong next = line_at(i + 1 == lines ? 0 : i + 1, lines, seed, bits);
    *(__global ulong *)(buffer + line_at(i, lines, seed, bits) * stride) = next * stride;
  }
}

// The lines of the ring through the first line, counted by walking it; 0 if an offset leads out of
// the memory or between lines, or none leads back.
__kernel void ring_length(__global const uchar *buffer, ulong lines, ulong stride,
                          __global ulong *length) {
  ulong at = 0, hops = 0;
  do {
    at = *(__global const ulong *)(buffer + at);
    ++hops;
  } while (at != 0 && hops < lines && at < lines * stride && at % stride == 0);
  *length = at == 0 ? hops : 0;
}

// Follows the ring for so many hops from `*at` on, and leaves there where they led: the next launch
// goes on from it, and no load can be left out.
__kernel void chase(__global const uchar *buffer, __global ulong *at, ulong hops) {
  ulong here = *at;
  for (ulong hop = 0; hop < hops; ++hop) here = *(__global const ulong *)(buffer + here);
  *at = here;
}

// Stores the offset of the line at `place` in the ring's order: where a chase must have led.
__kernel void line_offset(ulong place, ulong lines, ulong stride, ulong seed, uint bits,
                          __global ulong *offset) {
  *offset = line_at(place, lines, seed, bits) * stride;
}
