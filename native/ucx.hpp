// Copies by UCX, whose functions are called by their addresses: whoever has loaded its library
// gives them, and neither it nor its headers are needed to build this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace linkgauge::ucx {

// ucp_request_param_t up to its `memh`, as ucp.h has it since UCX 1.13; earlier ones read less,
// later ones more, if the mask asks for it.
struct Parameters {
  std::uint32_t mask = 0;
  std::uint32_t flags = 0;
  void* request = nullptr;
  void* callback = nullptr;
  std::uint64_t datatype = 0;
  void* user = nullptr;
  void* reply = nullptr;
  std::uint64_t memory_type = 0;
  void* received = nullptr;
  void* handle = nullptr;
  std::uint64_t later[8] = {};
};

// UCX's functions by their addresses, one for each name.
struct Functions {
  using Move = void* (*)(void* end, void* own, std::size_t size, std::uint64_t there, void* key,
                         const Parameters*);
  Move put, get;
  void* (*flush)(void* end, const Parameters*);
  void* (*send)(void* end, const void* word, std::size_t, std::uint64_t tag, const Parameters*);
  void* (*receive)(void* worker, void* word, std::size_t, std::uint64_t tag, std::uint64_t mask,
                   const Parameters*);
  unsigned (*progress)(void* worker);
  signed char (*check)(void* request);  // ucs_status_t is one byte
  void (*cancel)(void* worker, void* request);
  void (*free)(void* request);

  // Throws std::logic_error for a name that is missing.
  explicit Functions(const std::map<std::string, std::uintptr_t>& addresses);
};

// A rank's part of a copy. The one that `moves` puts its own bytes there, or gets those that are
// there, by an end and a key of its worker; the other one lets UCX make progress until a word with
// this tag comes. `handle` is its own memory as UCX knows it.
struct Part {
  std::uintptr_t worker = 0;
  std::uintptr_t end = 0;
  std::uintptr_t key = 0;
  std::uintptr_t own = 0;
  std::size_t size = 0;
  std::uintptr_t handle = 0;
  std::uint64_t there = 0;
  std::uint64_t tag = 0;
  bool puts = false;
  bool moves = false;
};

// What ended copies before their time: the status of a call for the part at this place, or nothing
// but silence.
struct Failure {
  std::string call;  // empty if nothing has failed, or UCX was silent
  int status = 0;
  std::size_t part = 0;
  bool silent = false;
};

// All parts at the same time, `loops` copies each, of which at most `window` are under way.
class Copies {
 public:
  // Throws std::invalid_argument for no parts, loops, window or bytes.
  Copies(const Functions& functions, std::vector<Part> parts, std::uint64_t loops,
         std::size_t window);
  // Leaves to UCX what is not done.
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // Until all is done or something fails, as it does once nothing has happened for `silent`
  // seconds.
  void run(double silent);

  const Failure& failure() const { return failure_; }
  // Of each part that moves, when all its bytes were there, in seconds of CLOCK_MONOTONIC; else 0.
  const std::vector<double>& ended() const { return ended_; }

  struct State;

 private:
  bool step(std::size_t at);
  bool move(std::size_t at);
  bool has_begun(std::size_t at, void*& request, const char* call);
  bool is_done(std::size_t at, void*& request, const char* call);
  bool is_over() const { return left_ == 0 || failure_.status != 0 || failure_.silent; }

  Functions functions_;
  std::vector<Part> parts_;
  std::vector<std::uintptr_t> workers_;
  std::vector<State> states_;
  std::vector<double> ended_;
  std::size_t window_;
  std::size_t left_;
  Failure failure_;
};

}  // namespace linkgauge::ucx
