// The caches of CPUs.
#pragma once

#include <cstddef>
#include <span>

namespace linkgauge {

// Total bytes of the distinct last-level caches of `cpus`.
//
// From /sys/devices/system/cpu; failing that, sysconf(_SC_LEVEL3_CACHE_SIZE), else 32 MiB.
// sysfs goes first because sysconf reports a whole package's cache on many AMD CPUs, and in virtual
// machines more than the guest's cores can use.
std::size_t last_level_cache(std::span<const int> cpus);

}  // namespace linkgauge
