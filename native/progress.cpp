#include "progress.hpp"

#include <algorithm>
#include <cstddef>

namespace linkgauge {

namespace {

// From this moment on the job moves `rate` bytes/s more, and `bytes` have moved at once: those of
// a lap that is too short for the clock.
struct Change {
  double when;
  double rate;
  double bytes;
};

}  // namespace

std::vector<double> progress_of(std::span<const Track> tracks) {
  const std::size_t laps = tracks.front().times.size() - 1;
  double begin = tracks.front().times.front(), end = begin, lap_bytes = 0;
  std::vector<Change> changes;
  for (const Track& track : tracks) {
    begin = std::min(begin, track.times.front());
    end = std::max(end, track.times.back());
    lap_bytes += track.lap_bytes;
    for (std::size_t lap = 0; lap < laps; ++lap) {
      const double from = track.times[lap], to = track.times[lap + 1];
      const double rate = to > from ? track.lap_bytes / (to - from) : 0;
      changes.push_back({from, rate, to > from ? 0 : track.lap_bytes});
      changes.push_back({to, -rate, 0});
    }
  }
  std::ranges::sort(changes, {}, &Change::when);
  std::vector<double> progress{begin};
  double last = begin, moved = 0, rate = 0;
  for (const Change& change : changes) {
    const double next = moved + rate * (change.when - last);
    while (progress.size() < laps) {
      const double due = lap_bytes * static_cast<double>(progress.size());
      if (due > next) break;
      // Sums of rates are rounded: never outside of what is looked at.
      progress.push_back(rate > 0 ? std::clamp(last + (due - moved) / rate, last, change.when)
                                  : last);
    }
    moved = next + change.bytes;
    rate += change.rate;
    last = change.when;
  }
  progress.resize(laps, end);
  progress.push_back(end);
  return progress;
}

}  // namespace linkgauge
