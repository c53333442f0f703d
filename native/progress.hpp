// When a job whose threads are timed one by one had moved each of its batches.
#pragma once

#include <span>
#include <vector>

namespace linkgauge {

// One thread of a job: when it began, and when it ended each of its batches, all of equal bytes.
struct Track {
  std::span<const double> times;
  double batch_bytes;
};

// When the first thread began, and when all threads together had moved 1, 2 … batches' bytes of the
// job; the last one is when the last thread ended. In a batch of a thread, bytes move evenly. The
// mean of the threads' times would be shorter: threads that share a CPU wait for each other. All
// tracks have as many times, at least two.
std::vector<double> progress_of(std::span<const Track> tracks);

}  // namespace linkgauge
