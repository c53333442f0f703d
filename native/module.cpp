// The module linkgauge._native: the one place where C++ and Python meet.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "affinity.hpp"
#include "cache.hpp"
#include "calls.hpp"
#include "chase.hpp"
#include "content.hpp"
#include "counting.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "pattern.hpp"
#include "ping_pong.hpp"
#include "primes.hpp"
#include "race.hpp"
#include "team.hpp"
#include "touch.hpp"
#include "ucx.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace linkgauge {

namespace {

// Ctrl-C ends a wait: a sample may last for long, or for ever.
std::vector<Span> wait(Team& team) {
  constexpr std::chrono::milliseconds kDeadline{50};
  bool done = false;
  while (!done) {
    {
      const nb::gil_scoped_release unlocked;
      done = team.done_within(kDeadline);
    }
    if (!done && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  const nb::gil_scoped_release unlocked;
  return team.wait();
}

using Cpus = std::vector<int>;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// OSError carries errno, as Python's own does; a call out of order is a RuntimeError.
void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::system_error& error) {
    const nb::object arguments = nb::make_tuple(error.code().value(), error.what());
    PyErr_SetObject(PyExc_OSError, arguments.ptr());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::logic_error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

std::byte* at(std::uintptr_t address, std::size_t size) {
  if (address == 0 && size > 0) throw std::invalid_argument("the address is null");
  return reinterpret_cast<std::byte*>(address);
}

void bind_memory(nb::module_& module) {
  nb::enum_<Kind>(module, "Kind", nb::is_arithmetic())
      .value("PINNED", Kind::Pinned)
      .value("PAGEABLE", Kind::Pageable)
      .value("HUGE", Kind::Huge)
      .value("BASE", Kind::Base)
      .value("TRANSPARENT", Kind::Transparent)
      .value("POOL", Kind::Pool);
  nb::enum_<Policy>(module, "Policy", nb::is_arithmetic())
      .value("BIND", Policy::Bind)
      .value("PREFERRED", Policy::Preferred)
      .value("INTERLEAVE", Policy::Interleave)
      .value("WEIGHTED", Policy::Weighted);
  nb::class_<Memory>(module, "Memory")
      .def(
          "__init__",
          [](Memory* self, std::size_t size, Kind kind, std::optional<int> node, const Cpus& cpus,
             Policy policy, const std::vector<int>& nodes) {
            new (self) Memory(size, kind, node, cpus, policy, nodes);
          },
          "size"_a, "kind"_a, "node"_a.none(), "cpus"_a, "policy"_a = Policy::Bind,
          "nodes"_a = std::vector<int>(), Unlocked())
      .def_prop_ro(
          "address",
          [](const Memory& self) { return reinterpret_cast<std::uintptr_t>(self.address()); })
      .def_prop_ro("size", &Memory::size)
      .def_prop_ro("locked", &Memory::locked)
      .def_prop_ro("lock_error", &Memory::lock_error)
      .def_prop_ro("bound", &Memory::bound)
      .def_prop_ro("bind_error", &Memory::bind_error)
      .def("nodes", &Memory::nodes, Unlocked())
      .def("huge_bytes", &Memory::huge_bytes, Unlocked())
      .def("close", &Memory::close, Unlocked());
  module.def(
      "nodes_of",
      [](std::uintptr_t address, std::size_t size) { return nodes_of(at(address, size), size); },
      "address"_a, "size"_a, Unlocked());
  module.def(
      "first_touch",
      [](std::uintptr_t address, std::size_t size, const Cpus& cpus, std::int64_t loops,
         std::int64_t batches) {
        if (loops < 1 || batches < 1) throw std::invalid_argument("loops must be at least 1");
        return first_touch(at(address, size), size, cpus, static_cast<std::uint64_t>(loops),
                           static_cast<std::uint64_t>(batches));
      },
      "address"_a, "size"_a, "cpus"_a, "loops"_a, "batches"_a = 1, Unlocked());
}

void bind_pattern(nb::module_& module) {
  nb::enum_<Pattern>(module, "Pattern", nb::is_arithmetic())
      .value("WORDS", Pattern::Words)
      .value("CONSTANT", Pattern::Constant)
      .value("SPLIT", Pattern::Split)
      .value("NUMBERS", Pattern::Numbers)
      .value("SCALED", Pattern::Scaled)
      .value("ADDED", Pattern::Added)
      .value("TRIAD", Pattern::Triad);
  module.def(
      "fill",
      [](std::uintptr_t address, std::size_t size, std::uint64_t seed, Pattern pattern,
         bool inverted,
         const Cpus& cpus) { fill(at(address, size), size, seed, pattern, inverted, cpus); },
      "address"_a, "size"_a, "seed"_a, "pattern"_a, "inverted"_a, "cpus"_a, Unlocked());
  module.def(
      "pattern_bytes",
      [](std::size_t size, std::uint64_t seed, Pattern pattern) {
        const std::vector<std::byte> made = pattern_bytes(size, seed, pattern);
        return nb::bytes(made.data(), made.size());
      },
      "size"_a, "seed"_a, "pattern"_a);
  module.def(
      "first_mismatch",
      [](std::uintptr_t address, std::size_t size, std::uint64_t seed, Pattern pattern,
         const Cpus& cpus) { return first_mismatch(at(address, size), size, seed, pattern, cpus); },
      "address"_a, "size"_a, "seed"_a, "pattern"_a, "cpus"_a, Unlocked());
  module.def(
      "checksum",
      [](std::uintptr_t address, std::size_t size, const Cpus& cpus) {
        return checksum(at(address, size), size, cpus);
      },
      "address"_a, "size"_a, "cpus"_a, Unlocked());
}

void bind_team(nb::module_& module) {
  nb::enum_<Op>(module, "Op", nb::is_arithmetic())
      .value("READ", Op::Read)
      .value("WRITE", Op::Write)
      .value("COPY", Op::Copy)
      .value("SCALE", Op::Scale)
      .value("ADD", Op::Add)
      .value("TRIAD", Op::Triad);
  nb::class_<Job>(module, "Job")
      .def(nb::init<Op, std::uintptr_t, std::uintptr_t, std::size_t, std::uint64_t, Cpus, bool,
                    std::optional<std::string>, std::uint64_t, double, bool>(),
           "op"_a, "source"_a, "destination"_a, "size"_a, "seed"_a, "cpus"_a, "endless"_a = false,
           "kernel"_a.none() = nb::none(), "chase"_a = 0, "rate"_a = 0.0, "tracked"_a = false)
      .def_ro("op", &Job::op)
      .def_ro("source", &Job::source)
      .def_ro("destination", &Job::destination)
      .def_ro("size", &Job::size)
      .def_ro("seed", &Job::seed)
      .def_ro("cpus", &Job::cpus)
      .def_ro("endless", &Job::endless)
      .def_ro("kernel", &Job::kernel)
      .def_ro("chase", &Job::chase)
      .def_ro("rate", &Job::rate)
      .def_ro("tracked", &Job::tracked);
  nb::class_<Span>(module, "Span")
      .def_ro("begin", &Span::begin)
      .def_ro("end", &Span::end)
      .def_ro("checksum", &Span::checksum)
      .def_ro("passes", &Span::passes)
      .def_ro("progress", &Span::progress);
  nb::class_<Team>(module, "Team")
      .def(
          "__init__", [](Team* self, const std::vector<Job>& jobs) { new (self) Team(jobs); },
          "jobs"_a, Unlocked())
      .def(
          "arm",
          [](Team& self, std::int64_t loops, std::int64_t batches) {
            if (loops < 1 || batches < 1) throw std::invalid_argument("loops must be at least 1");
            self.arm(static_cast<std::uint64_t>(loops), static_cast<std::uint64_t>(batches));
          },
          "loops"_a, "batches"_a = 1, Unlocked())
      .def("open", &Team::open, Unlocked())
      .def("wait", &wait)
      .def("counts", &Team::counts, Unlocked())
      .def("close", &Team::close, Unlocked());
}

void bind_kernels(nb::module_& module) {
  module.def("kernels", &kernel_names, "op"_a);
  module.def("linear_kernel", &linear_kernel, "op"_a);
  module.def("default_kernel", &default_kernel, "op"_a, "streaming"_a);
  module.def(
      "last_level_cache", [](const Cpus& cpus) { return last_level_cache(cpus); }, "cpus"_a,
      Unlocked());
  module.def("race", &race, "job"_a, "kernels"_a, "window"_a, "first"_a = 0, "loops"_a = 1,
             Unlocked());
}

using ContentFields =
    std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, int, double>;
using OriginFields = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

content::Content content_of(const ContentFields& fields) {
  return std::make_from_tuple<content::Content>(fields);
}

void bind_content(nb::module_& module) {
  module.def(
      "fill_content",
      [](std::uintptr_t address, std::size_t count, int type, const ContentFields& of,
         std::uint64_t rank, const Cpus& cpus) {
        fill_content(at(address, count), count, type, content_of(of), rank, cpus);
      },
      "address"_a, "count"_a, "type"_a, "content"_a, "rank"_a, "cpus"_a, Unlocked());
  module.def(
      "count_wrong",
      [](std::uintptr_t address, std::size_t count, int type, const ContentFields& of,
         const OriginFields& origin, const Cpus& cpus) {
        const auto wrong = count_wrong(at(address, count), count, type, content_of(of),
                                       std::make_from_tuple<content::Origin>(origin), cpus);
        return std::pair(wrong.count, wrong.first);
      },
      "address"_a, "count"_a, "type"_a, "content"_a, "origin"_a, "cpus"_a, Unlocked());
}

using Calls = std::vector<std::pair<std::uintptr_t, std::vector<std::uint64_t>>>;

std::vector<Call> calls_of(const Calls& given) {
  std::vector<Call> calls;
  for (const auto& [function, arguments] : given) calls.push_back({function, arguments});
  return calls;
}

void bind_calls(nb::module_& module) {
  module.def(
      "time_iterations",
      [](const Calls& given, std::size_t count, const Calls& last) {
        const std::vector<Call> calls = calls_of(given), at_last = calls_of(last);
        Iterations done;
        {
          const nb::gil_scoped_release unlocked;
          done = time_iterations(calls, count, at_last);
        }
        return nb::make_tuple(std::move(done.ends), done.status, done.failed);
      },
      "calls"_a, "count"_a, "last"_a = Calls());
  const Call idle = nothing();
  module.attr("NOTHING") = nb::make_tuple(idle.function, idle.arguments);
  module.attr("STORE_WORD") = reinterpret_cast<std::uintptr_t>(&store_word);
  module.attr("AWAIT_WORD") = reinterpret_cast<std::uintptr_t>(&await_word);
  module.attr("SEND_ALL") = reinterpret_cast<std::uintptr_t>(&send_all);
  module.attr("RECEIVE_ALL") = reinterpret_cast<std::uintptr_t>(&receive_all);
  module.attr("ENDED") = kEnded;
}

using UcxFields = std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                             std::size_t, std::uintptr_t, std::uint64_t, std::uint64_t, bool, bool>;

void bind_ucx(nb::module_& module) {
  nb::class_<ucx::Copies>(module, "UcxCopies")
      .def(
          "__init__",
          [](ucx::Copies* self, const std::map<std::string, std::uintptr_t>& functions,
             const std::vector<UcxFields>& given, std::int64_t loops, std::size_t window) {
            if (loops < 1) throw std::invalid_argument("loops must be at least 1");
            std::vector<ucx::Part> parts;
            for (const auto& fields : given) {
              parts.push_back(std::make_from_tuple<ucx::Part>(fields));
            }
            new (self) ucx::Copies(ucx::Functions(functions), std::move(parts),
                                   static_cast<std::uint64_t>(loops), window);
          },
          "functions"_a, "parts"_a, "loops"_a, "window"_a)
      .def("run", &ucx::Copies::run, "silent"_a, Unlocked())
      .def_prop_ro("failure",
                   [](const ucx::Copies& self) {
                     const ucx::Failure& failure = self.failure();
                     return nb::make_tuple(failure.call, failure.status, failure.part);
                   })
      .def_prop_ro("silent", [](const ucx::Copies& self) { return self.failure().silent; })
      .def_prop_ro("ended", &ucx::Copies::ended);
}

std::byte* cycle_at(std::uintptr_t address, std::size_t size) {
  if (size < kLink) throw std::invalid_argument("a cycle takes at least one line");
  return at(address, size);
}

void bind_chase(nb::module_& module) {
  module.attr("LINK") = kLink;
  module.def(
      "link_cycle",
      [](std::uintptr_t address, std::size_t size, std::uint64_t seed, int cpu) {
        std::byte* start = cycle_at(address, size);
        run_on(std::array{cpu}, [&](std::size_t) { link_cycle(start, size, seed); });
      },
      "address"_a, "size"_a, "seed"_a, "cpu"_a, Unlocked());
  module.def(
      "cycle_length",
      [](std::uintptr_t address, std::size_t size, int cpu) {
        std::byte* start = cycle_at(address, size);
        std::size_t length = 0;
        run_on(std::array{cpu}, [&](std::size_t) { length = cycle_length(start, size); });
        return length;
      },
      "address"_a, "size"_a, "cpu"_a, Unlocked());
}

void bind_ping_pong(nb::module_& module) {
  module.def(
      "ping_pong",
      [](int first, int second, std::int64_t loops, std::int64_t batches) {
        if (loops < 1 || batches < 1) throw std::invalid_argument("loops must be at least 1");
        PingPong found;
        {
          const nb::gil_scoped_release unlocked;
          found = ping_pong(first, second, static_cast<std::uint64_t>(loops),
                            static_cast<std::uint64_t>(batches));
        }
        return nb::make_tuple(found.times, found.bounces, found.counts);
      },
      "first"_a, "second"_a, "loops"_a, "batches"_a = 1);
}

void bind_counts(nb::module_& module) {
  nb::class_<Counts>(module, "Counts")
      .def_ro("seconds", &Counts::seconds)
      .def_ro("page_faults", &Counts::page_faults)
      .def_ro("context_switches", &Counts::context_switches)
      .def_ro("involuntary", &Counts::involuntary)
      .def_ro("migrations", &Counts::migrations)
      .def_ro("cycles", &Counts::cycles)
      .def_ro("instructions", &Counts::instructions)
      .def_ro("cache_misses", &Counts::cache_misses)
      .def_ro("tlb_misses", &Counts::tlb_misses)
      .def_ro("refused", &Counts::refused);
}

void bind_primes(nb::module_& module) {
  nb::class_<PrimesThread>(module, "PrimesThread")
      .def_ro("begin", &PrimesThread::begin)
      .def_ro("end", &PrimesThread::end)
      .def_ro("events", &PrimesThread::events)
      .def_ro("found", &PrimesThread::found)
      .def_ro("counts", &PrimesThread::counts);
  module.def(
      "find_primes",
      [](const Cpus& cpus, std::uint64_t limit, std::int64_t events) {
        if (events < 1) throw std::invalid_argument("events must be at least 1");
        return find_primes(cpus, limit, static_cast<std::uint64_t>(events));
      },
      "cpus"_a, "limit"_a, "events"_a, Unlocked());
}

}  // namespace

}  // namespace linkgauge

NB_MODULE(_native, module) {
  module.doc() = "Host memory, its contents, and the threads that move it.";
  nb::register_exception_translator(linkgauge::translate);
  linkgauge::bind_counts(module);
  linkgauge::bind_memory(module);
  linkgauge::bind_pattern(module);
  linkgauge::bind_content(module);
  linkgauge::bind_team(module);
  linkgauge::bind_kernels(module);
  linkgauge::bind_calls(module);
  linkgauge::bind_chase(module);
  linkgauge::bind_ping_pong(module);
  linkgauge::bind_primes(module);
  linkgauge::bind_ucx(module);
}
