// The caches that CPUs sit behind.
#pragma once

#include <cstddef>
#include <span>

namespace linkgauge {

// Bytes of all the distinct last-level caches behind `cpus`.
//
// From /sys/devices/system/cpu; where that is silent, sysconf(_SC_LEVEL3_CACHE_SIZE), else 32 MiB.
// sysfs goes first because sysconf reports a whole package's cache on many AMD CPUs, and in virtual
// machines more than the guest's cores can use.
std::size_t last_level_cache(std::span<const int> cpus);

}  // namespace linkgauge
