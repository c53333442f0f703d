// The clock of all timings here.
#pragma once

#include <time.h>

namespace linkgauge {

// Seconds of CLOCK_MONOTONIC.
inline double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace linkgauge
