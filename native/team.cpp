#include "team.hpp"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "affinity.hpp"
#include "chase.hpp"
#include "clock.hpp"
#include "kernels.hpp"
#include "pattern.hpp"
#include "progress.hpp"
#include "slice.hpp"

namespace linkgauge {

namespace {

constexpr std::uint32_t kClosing = std::numeric_limits<std::uint32_t>::max();
constexpr double kSpinTime = 0.01;  // seconds at a shut gate before a thread goes to sleep
constexpr int kSpinsAYield = 64;
// What a thread that is held back moves at once: a few microseconds' work, so that its load is
// smooth, and whole groups of the pages that kernels walk side by side.
constexpr std::size_t kPiece = 32 * 1024;
// Seconds behind its rate that a thread makes up for. Where CPUs are shared it goes without one for
// milliseconds: with a credit of 1 ms it reached a third of its rate there.
constexpr double kCredit = 0.1;
// Into how many parts a round of a tracked job is divided at least, and the bytes of a part below
// which reading the clock would count.
constexpr std::size_t kParts = 64;
constexpr std::size_t kLeastPart = 1024 * 1024;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::size_t footprint(const Job& job) {
  const bool has_one_end = job.op == Op::Read || job.op == Op::Write;
  return job.size * (has_one_end ? 1 : has_two_sources(job.op) ? 3 : 2);
}

Kernels kernels_of(const Job& job) {
  return job.kernel ? kernels_named(job.op, *job.kernel)
                    : kernels_for(streams(footprint(job), job.cpus));
}

}  // namespace

Job::Job(Op op_, std::uintptr_t source_, std::uintptr_t destination_, std::size_t size_,
         std::uint64_t seed_, std::vector<int> cpus_, bool endless_,
         std::optional<std::string> kernel_, std::uint64_t chase_, double rate_, bool tracked_)
    : op(op_),
      source(source_),
      destination(destination_),
      size(size_),
      seed(seed_),
      cpus(std::move(cpus_)),
      endless(endless_),
      kernel(std::move(kernel_)),
      chase(chase_),
      rate(rate_),
      tracked(tracked_ && !endless_) {
  check_cpus(cpus);
  if (kernel) kernels_named(op, *kernel);
  if (size == 0) throw std::invalid_argument("size must be at least 1 byte");
  if (op != Op::Write && source == 0) throw std::invalid_argument("this job needs a source");
  if (op != Op::Read && destination == 0)
    throw std::invalid_argument("this job needs a destination");
  if (chase != 0 && (op != Op::Read || cpus.size() != 1))
    throw std::invalid_argument("a chase is a read by one thread");
  if (!(rate >= 0) || (rate > 0 && !endless))
    throw std::invalid_argument("a rate is above 0, and of an endless job");
  if (computes(op) && (size % sizeof(double) != 0 || destination % sizeof(double) != 0))
    throw std::invalid_argument("arrays are of whole numbers of 8 bytes");
}

// One thread's share of a job, and its result, in cache lines of its own, so that no thread's
// result slows another's loop.
struct alignas(2 * kCacheLine) Team::Worker {
  Worker(const Job& job, std::size_t job_index_, std::size_t index, const Kernels& kernels_)
      : kernels(kernels_),
        op(job.op),
        job_index(job_index_),
        cpu(job.cpus[index]),
        endless(job.endless),
        most_parts(job.tracked ? std::max<std::size_t>(1, job.size / job.cpus.size() / kLeastPart)
                               : 1),
        chase(job.chase),
        at(reinterpret_cast<const std::byte*>(job.source)) {
    const Slice part = slice(job.size, job.cpus.size(), index, kCacheLine);
    const auto* source = reinterpret_cast<const std::byte*>(job.source + part.offset);
    auto* destination = reinterpret_cast<std::byte*>(job.destination + part.offset);
    const auto* second = reinterpret_cast<const std::byte*>(job.source + job.size + part.offset);
    work = {destination, source, second, part.size, word_of(job.seed, 0)};
    rate = job.rate / static_cast<double>(job.size) * static_cast<double>(part.size);
  }

  void once() {
    if (chase != 0) {
      at = follow(at, chase);
    } else if (parts == 1) {
      move(0, work.size);
    } else {
      std::uint64_t sum = 0;
      for (std::size_t part = 0; part < parts; ++part) {
        if (part > 0) times.push_back(now());
        const Slice own = slice(work.size, parts, part, kPiece);
        move(own.offset, own.size);
        sum ^= span.checksum;
      }
      span.checksum = sum;
    }
  }

  // A batch of one pass is divided, so that all batches have enough parts together.
  void arm(std::uint64_t loops_a_batch, std::uint64_t all_batches) {
    loops = loops_a_batch;
    batches = all_batches;
    parts = loops == 1 ? std::min<std::size_t>(most_parts, (kParts + batches - 1) / batches) : 1;
    times.reserve(batches * parts + 1);
  }

  void move(std::size_t offset, std::size_t bytes) {
    span.checksum = carry_out(kernels, op, work.part(offset, bytes));
  }

  Kernels kernels;
  Op op;
  Work work{};
  std::size_t job_index;
  int cpu;
  bool endless;
  std::size_t most_parts;
  std::uint64_t chase;
  const std::byte* at;  // of a chase: where it is
  double rate = 0;      // bytes/s of this share
  int pin_error = 0;
  std::uint64_t loops = 0;  // per batch
  std::uint64_t batches = 1;
  std::size_t parts = 1;  // of a batch
  double passes = 0;
  std::vector<double> times;  // begin, and the end of each part of each batch
  Counts counts;
  Span span{};
};

Team::Team(std::span<const Job> jobs) : job_count_(jobs.size()) {
  if (jobs.empty()) throw std::invalid_argument("a team needs at least one job");
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Job& job = jobs[j];
    const Kernels kernels = kernels_of(job);
    if (!job.endless) bounded_count_ += job.cpus.size();
    for (std::size_t i = 0; i < job.cpus.size(); ++i) {
      workers_.push_back(std::make_unique<Worker>(job, j, i, kernels));
    }
  }
  try {
    start();
  } catch (...) {
    close();  // joins the threads that did start
    throw;
  }
}

Team::~Team() { close(); }

void Team::start() {
  threads_.reserve(workers_.size());
  for (const auto& worker : workers_) threads_.emplace_back([this, &worker] { live(*worker); });
  std::unique_lock lock(mutex_);
  await_all(lock);
  for (const auto& worker : workers_) {
    if (worker->pin_error != 0) fail_to_pin(worker->cpu, worker->pin_error);
  }
}

void Team::arm(std::uint64_t loops, std::uint64_t batches) {
  if (loops < 1 || batches < 1) throw std::invalid_argument("loops must be at least 1");
  std::unique_lock lock(mutex_);
  require(State::Idle, "arm: the team is armed already, or running");
  state_ = State::Arming;
  loops_ = loops;
  batches_ = batches;
  bounded_ = bounded_count_;
  ++round_;
  work_.notify_all();
  await_all(lock);
  state_ = State::Armed;
}

void Team::open() {
  const std::unique_lock lock(mutex_);
  require(State::Armed, "open: the team is not armed");
  state_ = State::Running;
  gate_.store(round_, std::memory_order_release);
  gate_.notify_all();
}

bool Team::done_within(std::chrono::milliseconds deadline) {
  std::unique_lock lock(mutex_);
  require(State::Running, "wait: the team was not opened");
  end_endless();
  const auto settled = [&] { return arrived_ == workers_.size() || state_ == State::Closed; };
  return reported_.wait_for(lock, deadline, settled);
}

std::vector<Span> Team::wait() {
  std::unique_lock lock(mutex_);
  require(State::Running, "wait: the team was not opened");
  end_endless();
  state_ = State::Waiting;
  await_all(lock);
  state_ = State::Idle;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<Span> spans(job_count_, Span{kNever, -kNever, 0, 0, {}});
  std::vector<double> bytes(job_count_), moved(job_count_);
  std::vector<std::vector<Track>> tracks(job_count_);
  counts_ = Counts{};
  for (const auto& worker : workers_) {
    Span& span = spans[worker->job_index];
    span.begin = std::min(span.begin, worker->span.begin);
    span.end = std::max(span.end, worker->span.end);
    span.checksum ^= worker->span.checksum;
    counts_ += worker->counts;
    const auto size = static_cast<double>(worker->work.size);
    bytes[worker->job_index] += size;
    moved[worker->job_index] += size * worker->passes;
    tracks[worker->job_index].push_back({worker->times, size});
  }
  for (std::size_t job = 0; job < job_count_; ++job) {
    spans[job].passes = moved[job] / bytes[job];
    spans[job].progress = progress_of(tracks[job]);
  }
  return spans;
}

Counts Team::counts() const {
  const std::unique_lock lock(mutex_);
  return counts_;
}

void Team::close() {
  std::vector<std::thread> threads;
  {
    const std::unique_lock lock(mutex_);
    state_ = State::Closed;
    gate_.store(kClosing, std::memory_order_release);
    gate_.notify_all();
    threads.swap(threads_);
  }
  work_.notify_all();
  reported_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void Team::require(State state, const char* message) const {
  if (state_ == State::Closed) throw std::logic_error("the team is closed");
  if (state_ != state) throw std::logic_error(message);
}

// The body of each thread: pins itself, then runs a round at a time until the team closes.
void Team::live(Worker& worker) {
  worker.pin_error = pin_to(worker.cpu);
  Counter counter;
  report();
  for (std::uint32_t round = 1; next_round(worker, round); ++round) {
    report();
    if (!pass_gate(round)) return;
    counter.start();
    worker.span.begin = now();
    worker.times.assign(1, worker.span.begin);
    if (!(worker.rate > 0 ? run_at_rate(worker, round) : run(worker, round))) return;
    if (worker.endless) worker.times.push_back(now());
    worker.span.end = worker.times.back();
    worker.counts = counter.stop();
    if (!worker.endless && --bounded_ == 0) ending_.store(round, std::memory_order_relaxed);
    report();
  }
}

// False when the team closes in the middle of a long sample.
bool Team::run(Worker& worker, std::uint32_t round) {
  const std::uint64_t all = worker.loops * worker.batches;
  std::uint64_t done = 0;
  do {
    worker.once();
    ++done;
    if (!worker.endless && done % worker.loops == 0) worker.times.push_back(now());
    if (gate_.load(std::memory_order_relaxed) == kClosing) return false;
  } while (worker.endless ? ending_.load(std::memory_order_relaxed) != round : done < all);
  worker.passes = static_cast<double>(done);
  return true;
}

// Each piece has its time, and waits for it. False when the team closes.
bool Team::run_at_rate(Worker& worker, std::uint32_t round) {
  double bytes = 0;
  double due = worker.span.begin;
  std::size_t offset = 0;
  do {
    const std::size_t piece = std::min(kPiece, worker.work.size - offset);
    worker.move(offset, piece);
    offset = offset + piece == worker.work.size ? 0 : offset + piece;
    bytes += static_cast<double>(piece);
    due = std::max(due + static_cast<double>(piece) / worker.rate, now() - kCredit);
    while (now() < due && ending_.load(std::memory_order_relaxed) != round) relax();
    if (gate_.load(std::memory_order_relaxed) == kClosing) return false;
  } while (ending_.load(std::memory_order_relaxed) != round);
  worker.passes = bytes / static_cast<double>(worker.work.size);
  return true;
}

// Sleeps until the round is armed; false when the team closes.
bool Team::next_round(Worker& worker, std::uint32_t round) {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [&] { return round_ == round || state_ == State::Closed; });
  worker.arm(loops_, batches_);
  return state_ != State::Closed;
}

// Spins, so that all threads start within a microsecond of each other. They yield, because the
// controller may need one of their CPUs to open the gate, and sleep if that takes long.
bool Team::pass_gate(std::uint32_t round) {
  const double deadline = now() + kSpinTime;
  for (;;) {
    for (int spin = 0; spin < kSpinsAYield; ++spin) {
      const std::uint32_t gate = gate_.load(std::memory_order_acquire);
      if (gate == kClosing) return false;
      if (gate == round) return true;
      relax();
    }
    sched_yield();
    if (now() > deadline) gate_.wait(round - 1, std::memory_order_acquire);
  }
}

// Ends the round's endless jobs if the team has no others.
void Team::end_endless() {
  if (bounded_count_ == 0) ending_.store(round_, std::memory_order_relaxed);
}

void Team::report() {
  const std::unique_lock lock(mutex_);
  if (++arrived_ == workers_.size()) reported_.notify_all();
}

// Waits for every worker's report. Throws std::logic_error if the team closes meanwhile.
void Team::await_all(std::unique_lock<std::mutex>& lock) {
  reported_.wait(lock, [&] { return arrived_ == workers_.size() || state_ == State::Closed; });
  if (state_ == State::Closed) throw std::logic_error("the team was closed");
  arrived_ = 0;
}

}  // namespace linkgauge
