#include "calls.hpp"

#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace linkgauge {

namespace {

using Caller = int (*)(std::uintptr_t, const std::uint64_t*);

template <std::size_t>
using Word = std::uint64_t;

// Integers and pointers take a whole register or stack slot each on all 64-bit Linux platforms: a
// function with narrower parameters reads the low bits.
template <std::size_t... I>
int call(std::uintptr_t function, const std::uint64_t* arguments, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(Word<I>...)>(function)(arguments[I]...);
}

template <std::size_t Count>
int call_with(std::uintptr_t function, const std::uint64_t* arguments) {
  return call(function, arguments, std::make_index_sequence<Count>());
}

template <std::size_t... Count>
constexpr std::array<Caller, sizeof...(Count)> all(std::index_sequence<Count...>) {
  return {call_with<Count>...};
}

constexpr auto kByCount = all(std::make_index_sequence<kMostArguments + 1>());

// With the caller for its number of arguments.
struct Prepared {
  Caller caller;
  std::uintptr_t function;
  const std::uint64_t* arguments;
};

std::int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int do_nothing() { return 0; }

std::vector<Prepared> prepare(std::span<const Call> calls) {
  std::vector<Prepared> prepared;
  for (const Call& call : calls) {
    if (call.function == 0) throw std::invalid_argument("no function to call");
    if (call.arguments.size() > kMostArguments) throw std::invalid_argument("too many arguments");
    prepared.push_back({kByCount[call.arguments.size()], call.function, call.arguments.data()});
  }
  return prepared;
}

// Makes calls up to the first that fails; `first` is the place of the first of them.
void make(const std::vector<Prepared>& calls, std::size_t first, Iterations& done) {
  for (std::size_t at = 0; at < calls.size(); ++at) {
    done.status = calls[at].caller(calls[at].function, calls[at].arguments);
    if (done.status != 0) {
      done.failed = first + at;
      return;
    }
  }
}

}  // namespace

Iterations time_iterations(std::span<const Call> calls, std::size_t count,
                           std::span<const Call> last) {
  if (calls.empty() || count == 0) throw std::invalid_argument("no calls to time");
  const std::vector<Prepared> each = prepare(calls), at_last = prepare(last);
  Iterations done;
  done.ends.assign(count + 2, 0);  // written: the loop meets no page fault
  std::size_t number = 0;
  const std::int64_t begin = nanoseconds();
  while (number < count && done.status == 0) {
    make(each, 0, done);
    done.ends[++number] = nanoseconds() - begin;
  }
  if (!at_last.empty() && done.status == 0) {
    make(at_last, each.size(), done);
    done.ends[++number] = nanoseconds() - begin;
  }
  done.ends.resize(number + 1);
  return done;
}

Call nothing() { return {reinterpret_cast<std::uintptr_t>(&do_nothing), {}}; }

int store_word(std::uint64_t* word, const std::uint64_t* value) {
  std::atomic_ref(*word).store(*value, std::memory_order_release);
  return 0;
}

int await_word(std::uint64_t* word, std::uint64_t* value, std::uint64_t limit) {
  constexpr unsigned kSpins = 4096;  // between two looks at the clock
  // From then on the other side may wait for this CPU, and what a yield takes does not count.
  constexpr std::int64_t kYield = 100'000;
  const std::atomic_ref seen(*word);
  std::int64_t begin = 0;
  for (unsigned spins = 0; seen.load(std::memory_order_acquire) != *value; ++spins) {
    if (spins % kSpins != kSpins - 1) continue;
    const std::int64_t now = nanoseconds();
    if (begin == 0) begin = now;
    if (now - begin > static_cast<std::int64_t>(limit)) return kTookTooLong;
    if (now - begin > kYield) sched_yield();
  }
  ++*value;
  return 0;
}

int send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return 0;
}

int receive_all(int socket, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t received = recv(socket, data, size, MSG_WAITALL);
    if (received < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (received == 0) return kEnded;
    data += received;
    size -= static_cast<std::size_t>(received);
  }
  return 0;
}

}  // namespace linkgauge
