// Patterns, and teams of threads that move them.
#include "../team.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include "../calls.hpp"
#include "../pattern.hpp"
#include "../ping_pong.hpp"
#include "../progress.hpp"
#include "../race.hpp"
#include "check.hpp"

namespace linkgauge::test {

namespace {

constexpr std::size_t kTeamSizes[] = {1, 8, 63, 511, 512, 513, 4096, 100'003};
constexpr std::uint64_t kTeamSeed = 11;

std::uintptr_t at(Arena& arena) { return reinterpret_cast<std::uintptr_t>(arena.begin()); }

std::vector<std::byte> defined(std::size_t size, Pattern pattern, bool inverted) {
  auto found = words(size, kTeamSeed);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t first = word(kTeamSeed, 0);
    if (pattern == Pattern::Constant) found[i] = std::byte(first >> i % 8 * 8 & 0xFF);
    const bool flipped = pattern == Pattern::Split && i / 512 % 2 == 0;
    if (flipped != inverted) found[i] = ~found[i];
  }
  return found;
}

void patterns() {
  for (const std::size_t size : kTeamSizes) {
    for (const Pattern pattern : {Pattern::Words, Pattern::Constant, Pattern::Split}) {
      for (const bool inverted : {false, true}) {
        Arena arena(size, size % 9);
        fill(arena.begin(), size, kTeamSeed, pattern, inverted, cpus());
        const auto wanted = defined(size, pattern, inverted);
        check(std::equal(wanted.begin(), wanted.end(), arena.begin()) && arena.is_guarded());
        const auto found = first_mismatch(arena.begin(), size, kTeamSeed, pattern, cpus());
        check(found == (inverted ? std::optional<std::size_t>(0) : std::nullopt));
      }
    }
  }
}

void mismatches() {
  for (const std::size_t size : kTeamSizes) {
    for (const std::size_t wrong : {std::size_t{0}, size / 2, size - 1}) {
      Arena arena(size, 3);
      fill(arena.begin(), size, kTeamSeed, Pattern::Words, false, cpus());
      const std::uint64_t before = checksum(arena.begin(), size, cpus());
      arena.begin()[wrong] ^= std::byte{4};
      check(first_mismatch(arena.begin(), size, kTeamSeed, Pattern::Words, cpus()) == wrong);
      check(checksum(arena.begin(), size, cpus()) == (before ^ 4ULL << wrong % 8 * 8));
    }
  }
}

std::vector<Span> sample(Team& team, std::uint64_t loops, std::uint64_t batches) {
  team.arm(loops, batches);
  team.open();
  auto spans = team.wait();
  for (const Span& span : spans) check(span.begin <= span.end);
  return spans;
}

void moves() {
  const std::vector<int> oversubscription{cpus().front(), cpus().back(), cpus().front()};
  for (const std::size_t size : kTeamSizes) {
    Arena source(size, 1), destination(size, 2), constant(size, 0);
    fill(source.begin(), size, kTeamSeed, Pattern::Words, false, cpus());
    const Job jobs[] = {
        {Op::Copy, at(source), at(destination), size, kTeamSeed, oversubscription},
        {Op::Read, at(source), 0, size, kTeamSeed, oversubscription},
        {Op::Write, 0, at(constant), size, kTeamSeed, oversubscription},
    };
    Team team(jobs);
    for (int round = 0; round < 2; ++round) {
      const auto spans = sample(team, 2, 3);
      check(spans[1].checksum == checksum(source.begin(), size, cpus()));
      check(spans[0].passes == 6 && spans[0].progress.size() == 4);
    }
    check(!first_mismatch(destination.begin(), size, kTeamSeed, Pattern::Words, cpus()));
    check(!first_mismatch(constant.begin(), size, kTeamSeed, Pattern::Constant, cpus()));
    check(source.is_guarded() && destination.is_guarded() && constant.is_guarded());
  }
}

std::vector<double> together(const std::vector<std::vector<double>>& times,
                             const std::vector<double>& batch_bytes) {
  std::vector<Track> tracks;
  for (std::size_t i = 0; i < times.size(); ++i) tracks.push_back({times[i], batch_bytes[i]});
  return progress_of(tracks);
}

void progresses() {
  using Times = std::vector<double>;
  check(together({{3, 4, 6, 7}}, {8}) == Times{3, 4, 6, 7});
  check(together({{0, 1, 2}, {2, 3, 4}}, {8, 8}) == Times{0, 2, 4}, "one after the other");
  check(together({{0, 2, 4}, {1, 3, 5}}, {8, 8}) == Times{0, 2.5, 5}, "side by side");
  check(together({{0, 2, 4}, {0, 4, 8}}, {24, 8}) == Times{0, 16. / 7, 8}, "of unequal bytes");
  check(together({{0, 1}, {5, 9}}, {8, 8}) == Times{0, 9}, "one batch");
  check(together({{2, 2, 2, 2}}, {8}) == Times{2, 2, 2, 2}, "in less than a tick");
  check(together({{0, 1, 2}, {0, 1, 2}}, {8, 0}) == Times{0, 1, 2}, "a thread without bytes");
}

void tracks() {
  constexpr std::size_t kSize = (5 << 20) + 3;
  Arena source(kSize, 0), destination(kSize, 1);
  fill(source.begin(), kSize, kTeamSeed, Pattern::Words, false, cpus());
  const std::vector<int> two{cpus().front(), cpus().back()};
  const auto job = [&](Op op, std::uintptr_t to, bool tracked) {
    return Job(op, at(source), to, kSize, kTeamSeed, two, false, {}, 0, 0, tracked);
  };
  const Job jobs[] = {job(Op::Copy, at(destination), true), job(Op::Read, 0, true),
                      job(Op::Read, 0, false)};
  Team team(jobs);
  for (const auto& [loops, batches, parts] :
       {std::array{1, 3, 2}, {1, 40, 2}, {1, 64, 1}, {2, 3, 1}}) {
    const auto spans =
        sample(team, static_cast<std::uint64_t>(loops), static_cast<std::uint64_t>(batches));
    check(spans[0].progress.size() == static_cast<std::size_t>(batches * parts + 1));
    check(spans[2].progress.size() == static_cast<std::size_t>(batches + 1));
    check(std::ranges::is_sorted(spans[0].progress));
    check(spans[1].checksum == checksum(source.begin(), kSize, cpus()), "of all parts");
    check(!first_mismatch(destination.begin(), kSize, kTeamSeed, Pattern::Words, cpus()));
    destination.begin()[kSize - 1] ^= std::byte{1};
  }
  check(source.is_guarded() && destination.is_guarded());
}

void endless() {
  Arena source(10'000, 0), destination(10'000, 0);
  const Job jobs[] = {
      {Op::Read, at(source), 0, source.size(), kTeamSeed, {cpus().front()}, true},
      {Op::Copy, at(source), at(destination), source.size(), kTeamSeed, {cpus().back()}},
  };
  Team team(jobs);
  const auto spans = sample(team, 3, 1);
  check(spans[0].passes >= 1 && spans[1].passes == 3);
}

void disorder() {
  Arena source(64, 0);
  const Job job(Op::Read, at(source), 0, 64, kTeamSeed, cpus());
  Team team(std::span(&job, 1));
  check(throws<std::logic_error>([&] { team.open(); }));
  check(throws<std::logic_error>([&] { team.wait(); }));
  team.arm(1);
  check(throws<std::logic_error>([&] { team.arm(1); }));
  team.close();
  check(throws<std::logic_error>([&] { team.open(); }), "closed while armed");
  const Job lost(Op::Read, at(source), 0, 64, kTeamSeed, {cpus().front(), 60'000});
  check(throws<std::system_error>([&] { Team(std::span(&lost, 1)); }), "no such CPU");
  check(throws<std::invalid_argument>([] { Team({}); }));
}

void races() {
  Arena source(1 << 16, 0), destination(1 << 16, 0);
  fill(source.begin(), source.size(), kTeamSeed, Pattern::Words, false, cpus());
  const Job job(Op::Copy, at(source), at(destination), source.size(), kTeamSeed, cpus());
  const auto names = kernel_names(Op::Copy);
  const auto seconds = race(job, names, source.size() / 2, 0, 1);
  check(seconds.size() == names.size() && std::ranges::min(seconds) > 0);
  check(!first_mismatch(destination.begin(), source.size(), kTeamSeed, Pattern::Words, cpus()));
}

void bounces() {
  if (cpus().size() < 2) throw Skip("one CPU");
  const PingPong found = ping_pong(cpus()[0], cpus()[1], 20, 3);
  check(found.bounces == 2 * 20 * 3 && found.times.size() == 4);
  check(std::ranges::is_sorted(found.times));
  check(throws<std::invalid_argument>([] { ping_pong(cpus()[0], cpus()[0], 1, 1); }));
}

int sums = 0;
int add(std::uint64_t one, std::uint64_t other) {
  sums += static_cast<int>(one * other);
  return sums < 40 ? 0 : 7;
}

void calls() {
  const Call both{reinterpret_cast<std::uintptr_t>(&add), {2, 5}};
  const std::vector<Call> two{nothing(), both};
  const Iterations three = time_iterations(two, 3);
  check(three.status == 0 && sums == 30 && three.ends.size() == 4 && three.ends[0] == 0);
  check(std::ranges::is_sorted(three.ends), "time passes");
  const Iterations failed = time_iterations(two, 3);
  check(failed.status == 7 && sums == 40 && failed.failed == 1, "stops at the first failure");
  check(failed.ends.size() == 2, "what failed is the last");
}

const Test kPatterns("patterns follow their definition", patterns);
const Test kMismatches("the first wrong byte is found", mismatches);
const Test kMoves("teams move every byte", moves);
const Test kProgresses("a job progresses as its threads do together", progresses);
const Test kTracks("a large pass of a tracked job is timed in parts", tracks);
const Test kEndless("an endless job ends with the others", endless);
const Test kDisorder("calls out of order throw", disorder);
const Test kRaces("kernels race on the same memory", races);
const Test kBounces("a line bounces as often as it should", bounces);
const Test kCalls("a function is called until it fails", calls);

}  // namespace

}  // namespace linkgauge::test
