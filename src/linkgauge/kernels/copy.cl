// What an OpenCL device does with bytes by its own work-items: copy, read, write, and the known
// contents that copies are verified with (protocol.py's Pattern; the host's twin is native/pattern.*).
//
// Data move as 16-byte vectors; the last size % 16 bytes go one by one, by the first work-item.
// Built with BLOCKS for CPUs: each work-item takes one contiguous block, which the hardware
// prefetches and the compiler turns into wide moves. Without it (GPUs) neighbouring work-items
// take neighbouring vectors and stride by the whole grid, so that each access is coalesced.

typedef uint4 Vector;   // 16 bytes
typedef ulong2 Words;   // the same 16 bytes as two 64-bit words

#define VECTORS_PER_CHUNK 32   // base.CHUNK: 512 bytes go one way, the next 512 the other
#define WORDS_PER_CHUNK 64

enum {
  PATTERN_WORDS = 0, PATTERN_CONSTANT = 1, PATTERN_SPLIT = 2,
  PATTERN_NUMBERS = 3, PATTERN_SCALED = 4, PATTERN_ADDED = 5, PATTERN_TRIAD = 6
};

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef struct { ulong first, end, step; } Share;

// This work-item's share of `count` elements.
Share share_of(ulong count) {
  Share share;
#ifdef BLOCKS
  const ulong items = get_global_size(0);
  const ulong each = (count + items - 1) / items;
  share.first = min(get_global_id(0) * each, count);
  share.end = min(share.first + each, count);
  share.step = 1;
#else
  share.first = get_global_id(0);
  share.end = count;
  share.step = get_global_size(0);
#endif
  return share;
}

// Word `index` of `seed` in `pattern`; `flip` is all ones for the complement, else 0.
ulong word_of(ulong seed, ulong index, int pattern, ulong flip) {
  const ulong place = pattern == PATTERN_CONSTANT ? 0 : index;
  ulong x = (place + seed * 0xD1B54A32D192ED03UL) * 0x9E3779B97F4A7C15UL;
  x ^= x >> 29;
  if (pattern == PATTERN_SPLIT && (index / WORDS_PER_CHUNK) % 2 == 0) x = ~x;
  return x ^ flip;
}

// Word `index` of a buffer of `count` words. Patterns of numbers take double precision, without which
// nobody asks for them.
ulong content_of(ulong seed, ulong index, int pattern, ulong flip, ulong count) {
#ifdef cl_khr_fp64
  if (pattern >= PATTERN_NUMBERS) {
    const ulong one = 0x3FF0000000000000UL;
    const double b = as_double(one | word_of(seed, index, PATTERN_WORDS, 0) >> 16 << 4);
    const double c = as_double(one | word_of(seed, index + count, PATTERN_WORDS, 0) >> 16 << 4);
    double value = b;
    if (pattern == PATTERN_SCALED) value = 3 * b;
    if (pattern == PATTERN_ADDED) value = b + c;
    if (pattern == PATTERN_TRIAD) value = b + 3 * c;
    return as_ulong(value) ^ flip;
  }
#endif
  return word_of(seed, index, pattern, flip);
}

// The last size % 8 bytes, zero-extended to a word.
ulong tail_word(__global const uchar *bytes, ulong size) {
  ulong word = 0;
  for (ulong i = size - size % 8; i < size; ++i) word |= (ulong)bytes[i] << (8 * (i % 8));
  return word;
}

void store_tail(__global uchar *bytes, ulong size, ulong word) {
  for (ulong i = size - size % 8; i < size; ++i) bytes[i] = (uchar)(word >> (8 * (i % 8)));
}

__kernel void copy(__global const Vector *restrict source, __global Vector *restrict destination,
                   ulong size) {
  const Share share = share_of(size / 16);
  for (ulong i = share.first; i < share.end; i += share.step) destination[i] = source[i];
  if (get_global_id(0) == 0) {
    __global const uchar *from = (__global const uchar *)source;
    __global uchar *to = (__global uchar *)destination;
    for (ulong i = size - size % 16; i < size; ++i) to[i] = from[i];
  }
}

// Copies in pieces of `piece` bytes (a multiple of 16): work-group g carries out pieces g,
// g + groups, …, one after another, as so many streams of small transfers side by side.
__kernel void copy_pieces(__global const volatile Vector *source, __global Vector *destination,
                          ulong size, ulong piece) {
  const ulong each = piece / 16, vectors = size / 16, pieces = (vectors + each - 1) / each;
  for (ulong n = get_group_id(0); n < pieces; n += get_num_groups(0)) {
    const ulong end = min(n * each + each, vectors);
    for (ulong i = n * each + get_local_id(0); i < end; i += get_local_size(0))
      destination[i] = source[i];
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (get_global_id(0) == 0) {
    __global const uchar *from = (__global const uchar *)source;
    __global uchar *to = (__global uchar *)destination;
    for (ulong i = size - size % 16; i < size; ++i) to[i] = from[i];
  }
}

// Odd chunks go source to destination, even chunks back.
__kernel void exchange(__global Vector *restrict source, __global Vector *restrict destination,
                       ulong size) {
  const Share share = share_of(size / 16);
  for (ulong i = share.first; i < share.end; i += share.step) {
    if ((i / VECTORS_PER_CHUNK) % 2) destination[i] = source[i];
    else source[i] = destination[i];
  }
  if (get_global_id(0) == 0) {
    __global uchar *a = (__global uchar *)source;
    __global uchar *b = (__global uchar *)destination;
    for (ulong i = size - size % 16; i < size; ++i) {
      if ((i / (16 * VECTORS_PER_CHUNK)) % 2) b[i] = a[i];
      else a[i] = b[i];
    }
  }
}

// Xors all 64-bit words, the tail zero-extended, into one word a work-item. Every launch writes
// its own result afresh, so that the last loop's checksum is not cancelled by the one before.
__kernel void pure_read(__global const Words *source, __global ulong *partial, ulong size) {
  const Share share = share_of(size / 16);
  Words sum = (Words)(0, 0);
  for (ulong i = share.first; i < share.end; i += share.step) sum ^= source[i];
  ulong word = sum.x ^ sum.y;
  if (get_global_id(0) == 0) {
    if (size % 16 >= 8) word ^= ((__global const ulong *)source)[size / 8 - 1];
    word ^= tail_word((__global const uchar *)source, size);
  }
  partial[get_global_id(0)] = word;
}

// Stores word 0 of `seed` everywhere (PATTERN_CONSTANT).
__kernel void pure_write(__global Words *destination, ulong size, ulong seed) {
  const ulong word = word_of(seed, 0, PATTERN_CONSTANT, 0);
  const Share share = share_of(size / 16);
  for (ulong i = share.first; i < share.end; i += share.step) destination[i] = (Words)(word, word);
  if (get_global_id(0) == 0) {
    if (size % 16 >= 8) ((__global ulong *)destination)[size / 8 - 1] = word;
    store_tail((__global uchar *)destination, size, word);
  }
}

#ifdef cl_khr_fp64
// What STREAM computes: `makes` is the pattern that comes of numbers. `source` holds b and behind it
// c, of `size` bytes each.
__kernel void compute(__global const double *restrict source,
                      __global double *restrict destination, ulong size, int makes) {
  const ulong count = size / 8;
  __global const double *c = source + count;
  const Share share = share_of(count);
  if (makes == PATTERN_SCALED)
    for (ulong i = share.first; i < share.end; i += share.step) destination[i] = 3 * source[i];
  if (makes == PATTERN_ADDED)
    for (ulong i = share.first; i < share.end; i += share.step) destination[i] = source[i] + c[i];
  if (makes == PATTERN_TRIAD)
    for (ulong i = share.first; i < share.end; i += share.step)
      destination[i] = source[i] + 3 * c[i];
}
#endif

__kernel void fill(__global ulong *words, ulong size, ulong seed, int pattern, ulong flip) {
  const Share share = share_of(size / 8);
  for (ulong i = share.first; i < share.end; i += share.step)
    words[i] = content_of(seed, i, pattern, flip, size / 8);
  if (get_global_id(0) == 0)
    store_tail((__global uchar *)words, size, content_of(seed, size / 8, pattern, flip, size / 8));
}

// Lowers *bad to the first byte, counted from word `base`, that differs from the pattern. One
// launch looks at `count` words, fewer than 2^29: atomics on 64 bits are an extension.
__kernel void compare(__global const ulong *words, ulong size, ulong seed, int pattern, ulong base,
                      ulong count, __global uint *bad) {
  const Share share = share_of(count);
  uint worst = UINT_MAX;
  for (ulong i = share.first; i < share.end; i += share.step) {
    const ulong index = base + i;
    const ulong expected = content_of(seed, index, pattern, 0, size / 8);
    ulong found;
    if (index < size / 8) found = words[index];
    else found = tail_word((__global const uchar *)words, size);
    const ulong mask = index < size / 8 ? ULONG_MAX : (1UL << (8 * (size % 8))) - 1;
    const ulong wrong = (found ^ expected) & mask;
    if (wrong) worst = min(worst, (uint)(8 * i + (63 - clz(wrong & -wrong)) / 8));
  }
  if (worst != UINT_MAX) atomic_min(bad, worst);
}
