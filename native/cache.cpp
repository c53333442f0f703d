#include "cache.hpp"

#include <unistd.h>

#include <optional>
#include <set>
#include <string>

#include "text.hpp"

namespace linkgauge {

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kUnknownCache = std::size_t{32} << 20;

struct Cache {
  std::string shared_by;  // the kernel's list of CPUs: identifies the cache
  std::size_t size;
};

std::optional<Cache> outermost_cache(int cpu) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
  std::optional<Cache> found;
  std::size_t outermost = 0;
  for (int index = 0;; ++index) {
    const std::string cache = folder + std::to_string(index) + "/";
    const std::optional<std::size_t> level = leading_number(read_file(cache + "level"));
    if (!level) return found;
    const auto kibibytes = leading_number(read_file(cache + "size"));  // "32768K"
    if (*level < outermost || !kibibytes) continue;
    outermost = *level;
    found = Cache{read_file(cache + "shared_cpu_list"), *kibibytes * kKiB};
  }
}

std::size_t cache_by_sysconf() {
  const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? static_cast<std::size_t>(size) : kUnknownCache;
}

}  // namespace

std::size_t last_level_cache(std::span<const int> cpus) {
  std::size_t total = 0;
  std::set<std::string> counted;
  for (const int cpu : std::set<int>(cpus.begin(), cpus.end())) {
    const std::optional<Cache> cache = outermost_cache(cpu);
    if (cache && counted.insert(cache->shared_by).second) total += cache->size;
  }
  return total > 0 ? total : cache_by_sysconf();
}

}  // namespace linkgauge
