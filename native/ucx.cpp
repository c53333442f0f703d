#include "ucx.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "clock.hpp"

namespace linkgauge::ucx {

namespace {

constexpr signed char kInProgress = 1;
constexpr std::uintptr_t kErrors = 4096;  // pointers above the last so many bytes are statuses
constexpr std::uint32_t kHandle = 1u << 8, kManyAtOnce = 1u << 19;  // of ucp_op_attr_t
constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};
constexpr std::size_t kBurst = 16 << 20;  // bytes whose copies may begin between two looks around
constexpr int kLooks = 64;                // between two looks at the clock

constexpr const char* kPut = "ucp_put_nbx";
constexpr const char* kGet = "ucp_get_nbx";
constexpr const char* kFlush = "ucp_ep_flush_nbx";
constexpr const char* kSend = "ucp_tag_send_nbx";
constexpr const char* kReceive = "ucp_tag_recv_nbx";

constexpr Parameters kPlain;
constexpr char kWord = 1;  // outlives whatever UCX has not yet sent

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

template <class Function>
void find(const std::map<std::string, std::uintptr_t>& addresses, const char* name,
          Function& function) {
  const auto found = addresses.find(name);
  if (found == addresses.end() || found->second == 0) {
    throw std::logic_error(std::string("no address of ") + name);
  }
  function = reinterpret_cast<Function>(found->second);
}

}  // namespace

Functions::Functions(const std::map<std::string, std::uintptr_t>& addresses) {
  find(addresses, kPut, put);
  find(addresses, kGet, get);
  find(addresses, kFlush, flush);
  find(addresses, kSend, send);
  find(addresses, kReceive, receive);
  find(addresses, "ucp_worker_progress", progress);
  find(addresses, "ucp_request_check_status", check);
  find(addresses, "ucp_request_cancel", cancel);
  find(addresses, "ucp_request_free", free);
}

struct Copies::State {
  enum class Stage { Moving, Flushing, Saying, Listening, Done };

  Stage stage;
  std::uint64_t left;            // copies that have not begun
  std::vector<void*> under_way;  // a ring: null if it was done at once
  std::size_t first = 0, count = 0;
  void* last = nullptr;  // the flush, then the word
  char heard = 0;
  Parameters parameters;
};

using Stage = Copies::State::Stage;

Copies::Copies(const Functions& functions, std::vector<Part> parts, std::uint64_t loops,
               std::size_t window)
    : functions_(functions),
      parts_(std::move(parts)),
      ended_(parts_.size(), 0.0),
      window_(window),
      left_(parts_.size()) {
  if (parts_.empty() || loops < 1 || window < 1) throw std::invalid_argument("nothing to copy");
  for (const Part& part : parts_) {
    if (part.size < 1) throw std::invalid_argument("a copy of no bytes");
    if (std::ranges::find(workers_, part.worker) == workers_.end()) workers_.push_back(part.worker);
    State& state = states_.emplace_back();
    state.stage = part.moves ? Stage::Moving : Stage::Listening;
    state.left = part.moves ? loops : 0;
    state.under_way.resize(part.moves ? window : 0);
    state.parameters.mask = kManyAtOnce | (part.handle != 0 ? kHandle : 0);
    state.parameters.handle = pointer(part.handle);
  }
  for (std::size_t at = 0; at < parts_.size(); ++at) {
    if (parts_[at].moves) continue;
    State& state = states_[at];
    state.last = functions_.receive(pointer(parts_[at].worker), &state.heard, 1, parts_[at].tag,
                                    kWholeTag, &kPlain);
    has_begun(at, state.last, kReceive);
  }
}

Copies::~Copies() {
  for (std::size_t at = 0; at < states_.size(); ++at) {
    State& state = states_[at];
    for (; state.count > 0; --state.count) {
      void* const request = state.under_way[state.first];
      if (request != nullptr) functions_.free(request);
      state.first = (state.first + 1) % window_;
    }
    if (state.last == nullptr) continue;
    // Its word's place is about to go.
    if (state.stage == Stage::Listening) functions_.cancel(pointer(parts_[at].worker), state.last);
    functions_.free(state.last);
  }
}

// What a call returned: whether it has begun, and not failed. It may be done already, and null.
bool Copies::has_begun(std::size_t at, void*& request, const char* call) {
  const auto value = reinterpret_cast<std::uintptr_t>(request);
  if (value <= ~std::uintptr_t{0} - kErrors) return true;
  request = nullptr;
  failure_ = {call, static_cast<int>(static_cast<std::intptr_t>(value)), at};
  return false;
}

// Whether it has come to an end, and was freed.
bool Copies::is_done(std::size_t at, void*& request, const char* call) {
  if (request == nullptr) return true;
  const signed char status = functions_.check(request);
  if (status == kInProgress) return false;
  functions_.free(std::exchange(request, nullptr));
  if (status < 0) failure_ = {call, status, at};
  return true;
}

// Begins what the window lets begin; whether anything has happened.
bool Copies::move(std::size_t at) {
  const Part& part = parts_[at];
  State& state = states_[at];
  const char* const call = part.puts ? kPut : kGet;
  const auto function = part.puts ? functions_.put : functions_.get;
  bool happened = false;
  while (state.count > 0 && is_done(at, state.under_way[state.first], call)) {
    state.first = (state.first + 1) % window_;
    --state.count;
    happened = true;
  }
  std::size_t most = std::max<std::size_t>(kBurst / part.size, 1);
  for (; most > 0 && state.left > 0 && state.count < window_ && !is_over(); --most, --state.left) {
    void* request = function(pointer(part.end), pointer(part.own), part.size, part.there,
                             pointer(part.key), &state.parameters);
    happened = true;
    if (!has_begun(at, request, call) || request == nullptr) continue;
    state.under_way[(state.first + state.count++) % window_] = request;
  }
  return happened;
}

// Goes on with a part as far as it goes; whether anything has happened.
bool Copies::step(std::size_t at) {
  const Part& part = parts_[at];
  State& state = states_[at];
  switch (state.stage) {
    case Stage::Moving: {
      const bool happened = move(at);
      if (is_over() || state.left > 0 || state.count > 0) return happened;
      state.last = functions_.flush(pointer(part.end), &kPlain);
      state.stage = Stage::Flushing;
      has_begun(at, state.last, kFlush);
      return true;
    }
    case Stage::Flushing:
      if (!is_done(at, state.last, kFlush)) return false;
      if (is_over()) return true;
      ended_[at] = now();
      state.last = functions_.send(pointer(part.end), &kWord, 1, part.tag, &kPlain);
      state.stage = Stage::Saying;
      has_begun(at, state.last, kSend);
      return true;
    case Stage::Saying:
    case Stage::Listening:
      if (!is_done(at, state.last, part.moves ? kSend : kReceive)) return false;
      state.stage = Stage::Done;
      --left_;
      return true;
    case Stage::Done:
      break;
  }
  return false;
}

void Copies::run(double silent) {
  double heard = now();
  while (true) {
    bool happened = false;
    for (int look = 0; look < kLooks; ++look) {
      for (std::size_t at = 0; at < parts_.size() && !is_over(); ++at) happened |= step(at);
      if (is_over()) return;
      for (const std::uintptr_t worker : workers_) {
        happened |= functions_.progress(pointer(worker)) != 0;
      }
    }
    const double read = now();
    if (happened) heard = read;
    failure_.silent = read - heard > silent;
  }
}

}  // namespace linkgauge::ucx
