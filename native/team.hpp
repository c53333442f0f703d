// Threads that start together, each moving its share of a job's bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "counting.hpp"
#include "kernels.hpp"

namespace linkgauge {

// One transfer: each listed CPU gets a thread, and each thread a contiguous share of the bytes.
// An endless one runs until the team's others have ended, or without others until wait(). One
// without a kernel uses that of kernels_for(). A `chase` is a read by one thread, a loop of which
// takes so many hops along the pointers of `source`. A `rate` (bytes/s of the whole job) holds an
// endless job back; it then stops amid a pass, and so does one at an infinite rate. The source of
// an operation with two holds one array of `size` bytes behind the other. A `tracked` one, unless
// it is endless, reports progress within a pass, too, if a batch is one large pass.
struct Job {
  // Throws std::invalid_argument for an empty size, no CPU, a null address that `op` needs, a
  // kernel that this CPU does not run, a chase by several threads, a rate below 0 or of a job that
  // is not endless, or numbers that are cut or at odd addresses.
  Job(Op op, std::uintptr_t source, std::uintptr_t destination, std::size_t size,
      std::uint64_t seed, std::vector<int> cpus, bool endless = false,
      std::optional<std::string> kernel = std::nullopt, std::uint64_t chase = 0, double rate = 0,
      bool tracked = false);

  Op op;
  std::uintptr_t source;
  std::uintptr_t destination;
  std::size_t size;
  std::uint64_t seed;
  std::vector<int> cpus;
  bool endless;
  std::optional<std::string> kernel;
  std::uint64_t chase;  // hops a loop; 0: none
  double rate;          // 0: whole passes, as fast as they can be
  bool tracked;
};

struct Span {
  double begin;  // seconds of CLOCK_MONOTONIC: the job's first thread starts
  double end;    // its last thread ends
  std::uint64_t checksum;
  double passes;  // how often all of its bytes were processed: any number in an endless job
  // progress_of() its threads, by batches or equal parts of batches; of an endless job, begin and
  // end.
  std::vector<double> progress;
};

// One sample is arm, open, wait. Between samples the threads sleep. Calls out of order throw
// std::logic_error. The memory that jobs name must outlive the team.
class Team {
 public:
  explicit Team(std::span<const Job> jobs);  // throws std::system_error
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Arms `batches` batches of `loops` loops. Returns once every thread waits at the gate.
  void arm(std::uint64_t loops, std::uint64_t batches = 1);
  void open();
  // Whether all threads are done, after at most this long: callers handle signals in between.
  bool done_within(std::chrono::milliseconds deadline);
  std::vector<Span> wait();
  // What all threads met with between the gate and the end of the latest round waited for.
  Counts counts() const;
  void close();

 private:
  struct Worker;
  enum class State { Idle, Arming, Armed, Running, Waiting, Closed };

  void start();
  void live(Worker& worker);
  bool run(Worker& worker, std::uint32_t round);
  bool run_at_rate(Worker& worker, std::uint32_t round);
  bool next_round(Worker& worker, std::uint32_t round);
  bool pass_gate(std::uint32_t round);
  void report();
  void await_all(std::unique_lock<std::mutex>& lock);
  void end_endless();
  void require(State state, const char* message) const;

  mutable std::mutex mutex_;
  std::condition_variable work_;      // for the workers: a round is armed, or the team closes
  std::condition_variable reported_;  // for the controller: all workers have reported
  State state_ = State::Idle;
  std::uint32_t round_ = 0;  // the latest round armed
  std::uint64_t loops_ = 0;  // per batch of that round
  std::uint64_t batches_ = 1;
  std::size_t arrived_ = 0;  // workers that have reported since the controller last asked
  std::atomic<std::uint32_t> gate_ = 0;    // the latest round released; all ones: closing
  std::atomic<std::uint32_t> ending_ = 0;  // the latest round whose endless jobs are to end
  std::atomic<std::size_t> bounded_ = 0;   // workers of other jobs that are not done yet
  std::size_t job_count_;
  std::size_t bounded_count_ = 0;
  Counts counts_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace linkgauge
