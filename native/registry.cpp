// All kernels by name, and which of them this CPU runs.
#include <algorithm>
#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels.hpp"
#include "variants.hpp"

namespace linkgauge {

namespace {

template <class Function>
struct Named {
  std::string name;
  Function function;
};

template <class Function>
using List = std::vector<Named<Function>>;

template <class Function>
void append(List<Function>& known, const Table<Function>& table, const char* unit) {
  for (std::size_t i = 0; i < table.count; ++i) {
    const Variant<Function>& variant = table.variants[i];
    const char* suffix = variant.prefetches ? "-prefetch" : "";
    known.push_back({std::string(variant.name) + "-" + unit + suffix, variant.function});
  }
}

#if defined(__x86_64__)
void rep_copy(std::byte* destination, const std::byte* source, std::size_t size) {
  asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(size) : : "memory");
}

void rep_write(std::byte* destination, std::size_t size, std::uint64_t word) {
  std::size_t words = size / sizeof word;
  asm volatile("rep stosq" : "+D"(destination), "+c"(words) : "a"(word) : "memory");
  portable::write(destination, size % sizeof word, word);
}
#endif

#if defined(__x86_64__)
constexpr unsigned kSavesAvx = 0x06;     // SSE's registers and the upper halves of AVX's
constexpr unsigned kSavesAvx512 = 0xe6;  // and those of AVX-512

// Whether the CPU has a feature of leaf 7 and the system saves its registers (XCR0). Not by
// __builtin_cpu_supports: the runtime library of zig 0.17 answers no, whatever the CPU has.
bool cpu_has(unsigned feature, unsigned saved) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  if (!(ecx & bit_OSXSAVE) || !(ecx & bit_AVX)) return false;
  asm("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  if ((eax & saved) != saved) return false;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & feature);
}
#endif

struct Registry {
  List<Read> reads{{"portable", portable::read}};
  List<Write> writes{{"portable", portable::write}};
  List<Copy> copies{{"libc", portable::copy}, {"portable", portable::copy_linear}};
  List<Scale> scales{{"portable", portable::scale}};
  List<Combine> adds{{"portable", portable::add}};
  List<Combine> triads{{"portable", portable::triad}};

  Registry() {
#if defined(__x86_64__)
    writes.push_back({"rep", rep_write});
    copies.push_back({"rep", rep_copy});
    if (cpu_has(bit_AVX2, kSavesAvx)) append(kAvx2, "avx2");
    if (cpu_has(bit_AVX512F, kSavesAvx512)) append(kAvx512, "avx512");
#elif defined(__aarch64__)
    append(kNeon, "neon");
#endif
  }

  void append(const Unit& unit, const char* name) {
    linkgauge::append(reads, unit.reads, name);
    linkgauge::append(writes, unit.writes, name);
    linkgauge::append(copies, unit.copies, name);
    linkgauge::append(scales, unit.scales, name);
    linkgauge::append(adds, unit.adds, name);
    linkgauge::append(triads, unit.triads, name);
  }
};

const Registry& registry() {
  static const Registry known;
  return known;
}

template <class Function>
std::vector<std::string> names_of(const List<Function>& known) {
  std::vector<std::string> names;
  for (const auto& kernel : known) names.push_back(kernel.name);
  return names;
}

template <class Function>
Function find(const List<Function>& known, const std::string& name) {
  const auto found = std::ranges::find(known, name, &Named<Function>::name);
  if (found == known.end()) throw std::invalid_argument("this CPU runs no kernel " + name);
  return found->function;
}

bool is_known(Op op, const std::string& name) {
  return std::ranges::count(kernel_names(op), name) > 0;
}

// The kernel of this kind for the vector unit that most CPUs have, else that of the other name.
std::string in_vectors(Op op, const std::string& kind, const char* otherwise) {
  for (const char* unit : {"-avx2", "-neon"}) {
    if (is_known(op, kind + unit)) return kind + unit;
  }
  return otherwise;
}

}  // namespace

std::vector<std::string> kernel_names(Op op) {
  const Registry& known = registry();
  switch (op) {
    case Op::Read:
      return names_of(known.reads);
    case Op::Write:
      return names_of(known.writes);
    case Op::Copy:
      return names_of(known.copies);
    case Op::Scale:
      return names_of(known.scales);
    case Op::Add:
      return names_of(known.adds);
    case Op::Triad:
      return names_of(known.triads);
  }
  return {};
}

std::string default_kernel(Op op, bool streaming) {
  const std::string kind = op != Op::Read && streaming ? "nt-1" : "plain";
  // Within the caches the C library's copy is the best default.
  const char* otherwise = op == Op::Copy ? "libc" : "portable";
  return op == Op::Copy && !streaming ? otherwise : in_vectors(op, kind, otherwise);
}

// gcc uses the widest vectors on AMD's CPUs. On Intel's it uses 256 bits, unless
// -mprefer-vector-width asks for more (GCC manual, x86 options).
std::string linear_kernel(Op op) {
#if defined(__x86_64__)
  if (__builtin_cpu_is("amd") && is_known(op, "plain-avx512")) return "plain-avx512";
#endif
  return in_vectors(op, "plain", "portable");
}

Kernels kernels_for(bool streaming) {
  const Registry& known = registry();
  return {find(known.reads, default_kernel(Op::Read, streaming)),
          find(known.writes, default_kernel(Op::Write, streaming)),
          find(known.copies, default_kernel(Op::Copy, streaming)),
          find(known.scales, default_kernel(Op::Scale, streaming)),
          find(known.adds, default_kernel(Op::Add, streaming)),
          find(known.triads, default_kernel(Op::Triad, streaming))};
}

Kernels kernels_named(Op op, const std::string& name) {
  Kernels kernels{portable::read,  portable::write, portable::copy,
                  portable::scale, portable::add,   portable::triad};
  if (op == Op::Read) kernels.read = find(registry().reads, name);
  if (op == Op::Write) kernels.write = find(registry().writes, name);
  if (op == Op::Copy) kernels.copy = find(registry().copies, name);
  if (op == Op::Scale) kernels.scale = find(registry().scales, name);
  if (op == Op::Add) kernels.add = find(registry().adds, name);
  if (op == Op::Triad) kernels.triad = find(registry().triads, name);
  return kernels;
}

}  // namespace linkgauge
