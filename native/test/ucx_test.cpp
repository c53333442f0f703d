// Copies by UCX, whose part a few functions play: requests end one by one as progress is made.
#include "../ucx.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>

#include "check.hpp"

namespace linkgauge::test {

namespace {

constexpr int kInProgress = 1, kUnreachable = -6;

struct Request {
  char what;
  signed char status = kInProgress;
};

// What was called: p a put, g a get, f a flush, s a word that is sent, r one that is awaited, c a
// request that is cancelled.
struct Played {
  std::string calls;
  std::deque<Request*> under_way;
  std::size_t most = 0;  // under way at once
  int held = 0;          // requests that nobody has freed
  char at_once = 0;      // what is done when it is called
  char failing = 0;      // what ends with an error
  char refused = 0;      // what is an error when it is called
  bool idle = false;     // nothing ends any more
};

Played played;

void* begin(char what) {
  played.calls += what;
  if (what == played.refused) return reinterpret_cast<void*>(std::intptr_t{kUnreachable});
  if (what == played.at_once) return nullptr;
  ++played.held;
  played.under_way.push_back(new Request{what});
  played.most = std::max(played.most, played.under_way.size());
  return played.under_way.back();
}

void* put(void*, void*, std::size_t, std::uint64_t, void*, const ucx::Parameters*) {
  return begin('p');
}
void* get(void*, void*, std::size_t, std::uint64_t, void*, const ucx::Parameters*) {
  return begin('g');
}
void* flush(void*, const ucx::Parameters*) { return begin('f'); }
void* send(void*, const void*, std::size_t, std::uint64_t, const ucx::Parameters*) {
  return begin('s');
}
void* receive(void*, void*, std::size_t, std::uint64_t, std::uint64_t, const ucx::Parameters*) {
  return begin('r');
}
unsigned progress(void*) {
  if (played.idle || played.under_way.empty()) return 0;
  Request* const first = played.under_way.front();
  played.under_way.pop_front();
  first->status = first->what == played.failing ? kUnreachable : 0;
  return 1;
}
signed char status_of(void* request) { return static_cast<Request*>(request)->status; }
void cancel(void*, void*) { played.calls += 'c'; }
void release(void* request) {
  auto* const own = static_cast<Request*>(request);
  std::erase(played.under_way, own);
  --played.held;
  delete own;
}

template <class Function>
std::uintptr_t address(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

std::map<std::string, std::uintptr_t> functions() {
  return {{"ucp_put_nbx", address(put)},
          {"ucp_get_nbx", address(get)},
          {"ucp_ep_flush_nbx", address(flush)},
          {"ucp_tag_send_nbx", address(send)},
          {"ucp_tag_recv_nbx", address(receive)},
          {"ucp_worker_progress", address(progress)},
          {"ucp_request_check_status", address(status_of)},
          {"ucp_request_cancel", address(cancel)},
          {"ucp_request_free", address(release)}};
}

ucx::Part part(bool puts, bool moves) {
  ucx::Part made;
  made.worker = 1;
  made.size = 4096;
  made.puts = puts;
  made.moves = moves;
  return made;
}

constexpr std::uint64_t kLoops = 10;
constexpr std::size_t kWindow = 4;
constexpr double kLong = 60.0;

ucx::Failure run(const std::vector<ucx::Part>& parts, double silent = kLong) {
  ucx::Copies copies(ucx::Functions(functions()), parts, kLoops, kWindow);
  copies.run(silent);
  for (std::size_t at = 0; at < parts.size() && copies.failure().call.empty(); ++at) {
    check((copies.ended()[at] > 0.0) == parts[at].moves || copies.failure().silent, "when");
  }
  return copies.failure();
}

void moves_by_ucx() {
  for (const char at_once : {'\0', 'p', 'f', 's'}) {
    played = {};
    played.at_once = at_once;
    check(run({part(true, true)}).call.empty());
    check(played.calls == std::string(kLoops, 'p') + "fs", played.calls);
    check(played.most <= kWindow, "the window");
    check(played.held == 0, "all is freed");
  }
  played = {};
  check(run({part(false, true)}).call.empty());
  check(played.calls == std::string(kLoops, 'g') + "fs", played.calls);
}

void listens_concurrently() {
  played = {};
  check(run({part(true, true), part(true, false)}).call.empty());
  check(played.calls.front() == 'r' && played.held == 0, played.calls);
}

void fails() {
  const std::map<char, std::string> calls{{'p', "ucp_put_nbx"},
                                          {'f', "ucp_ep_flush_nbx"},
                                          {'s', "ucp_tag_send_nbx"},
                                          {'r', "ucp_tag_recv_nbx"}};
  for (const auto& [what, call] : calls) {
    for (const bool at_once : {false, true}) {
      played = {};
      (at_once ? played.refused : played.failing) = what;
      const ucx::Failure failure = run({part(true, true), part(true, false)});
      check(failure.call == call && failure.status == kUnreachable, call);
      check(failure.part == (what == 'r' ? 1u : 0u), "which part");
      check(played.held == 0, "nothing is left");
    }
  }
}

void falls_silent() {
  played = {};
  played.idle = true;
  check(run({part(true, false)}, 0.01).silent, "silent");
  check(played.calls == "rc" && played.held == 0, "its word's place is given back");
}

void refuses_nothing_to_do() {
  const ucx::Functions known(functions());
  const auto copies = [&](std::vector<ucx::Part> parts, std::uint64_t loops, std::size_t window) {
    return throws<std::invalid_argument>([&] { ucx::Copies(known, parts, loops, window); });
  };
  ucx::Part empty = part(true, true);
  empty.size = 0;
  check(copies({}, 1, 1) && copies({empty}, 1, 1));
  check(copies({part(true, true)}, 0, 1) && copies({part(true, true)}, 1, 0));
  check(throws<std::logic_error>([] { ucx::Functions({}); }), "no functions");
}

const Test kTests[] = {
    {"ucx moves by a window, flushes, and says so", moves_by_ucx},
    {"ucx listens beside", listens_concurrently},
    {"ucx names the call that fails", fails},
    {"ucx falls silent", falls_silent},
    {"ucx refuses nothing to do", refuses_nothing_to_do},
};

}  // namespace

}  // namespace linkgauge::test
