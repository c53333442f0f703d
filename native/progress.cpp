#include "progress.hpp"

#include <algorithm>
#include <cstddef>

namespace linkgauge {

namespace {

// From this moment on the job moves `rate` bytes/s more, and `bytes` have moved at once: those of
// a batch that is too short for the clock.
struct Change {
  double when;
  double rate;
  double bytes;
};

}  // namespace

std::vector<double> progress_of(std::span<const Track> tracks) {
  const std::size_t batches = tracks.front().times.size() - 1;
  double begin = tracks.front().times.front(), end = begin, batch_bytes = 0;
  std::vector<Change> changes;
  for (const Track& track : tracks) {
    begin = std::min(begin, track.times.front());
    end = std::max(end, track.times.back());
    batch_bytes += track.batch_bytes;
    for (std::size_t batch = 0; batch < batches; ++batch) {
      const double from = track.times[batch], to = track.times[batch + 1];
      const double rate = to > from ? track.batch_bytes / (to - from) : 0;
      changes.push_back({from, rate, to > from ? 0 : track.batch_bytes});
      changes.push_back({to, -rate, 0});
    }
  }
  std::ranges::sort(changes, {}, &Change::when);
  std::vector<double> progress{begin};
  double last = begin, moved = 0, rate = 0;
  for (const Change& change : changes) {
    const double next = moved + rate * (change.when - last);
    while (progress.size() < batches) {
      const double due = batch_bytes * static_cast<double>(progress.size());
      if (due > next) break;
      // Sums of rates are rounded: never outside of what is looked at.
      progress.push_back(rate > 0 ? std::clamp(last + (due - moved) / rate, last, change.when)
                                  : last);
    }
    moved = next + change.bytes;
    rate += change.rate;
    last = change.when;
  }
  progress.resize(batches, end);
  progress.push_back(end);
  return progress;
}

}  // namespace linkgauge
