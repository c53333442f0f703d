"""Which kernel a host's job gets: found by turns, remembered, tested anew, or asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from linkgauge import _native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.host_kernels import (
    EVERYWHERE,
    OPS,
    Kernels,
    Regime,
    load,
    regime_of,
    remembered_file,
)
from linkgauge.machine.host import read_host
from linkgauge.machine.tree import Captured
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import named

CPU = read_host().nodes[0].cpus[0]
COPY, READ, WRITE = _native.Op.COPY, _native.Op.READ, _native.Op.WRITE


class FakeCourse:
    """Takes no time: `policies` are seconds per byte, `disturbed` turns take ten times as long."""

    def __init__(self, policies, disturbed=0.0):
        self.policies = policies
        self.disturbed = disturbed
        self.turns = []
        self.closed = False

    def take_turns(self, op, kernels, turns, seconds):
        self.turns.append((op, tuple(kernels), turns, seconds))
        late = round(turns * self.disturbed)
        return {
            kernel: [self.policies.get(kernel, 9.0) * (10 if turn < late else 1 + turn / 1e6)
                     for turn in range(turns)]
            for kernel in kernels
        }  # fmt: skip

    def close(self):
        self.closed = True


def policies():
    return {n: 5.0 - i / 100 for op in OPS for i, n in enumerate(_native.kernels(op))}


def measured(file, courses, of=None, disturbed=0.0):
    def course_of(where):
        courses.append(FakeCourse(of or policies(), disturbed))
        return courses[-1]

    return Kernels(None, file, course_of)


def test_what_is_found_is_remembered_and_only_tested_anew_later(tmp_path):
    file, courses = tmp_path / "folder" / "host.json", []
    first = measured(file, courses)
    first.prepare()
    assert len(courses) == len(EVERYWHERE)
    chosen = first.choose(COPY, [CPU], 4096)
    assert chosen.why == "chosen on this machine"
    assert len(courses) == len(EVERYWHERE)  # what was just found needs no test
    known = load(file)
    assert len(known) == len(EVERYWHERE) * len(OPS)
    assert known[regime_of(COPY, [CPU], 4096).case(COPY)][0] == chosen.kernel

    later = []
    again = measured(file, later)
    again.prepare()
    assert not later
    assert again.choose(COPY, [CPU], 4096) == chosen
    assert again.choose(READ, [CPU], 4096).why == "chosen on this machine"
    assert again.choose(COPY, [CPU], 8192) == chosen
    tested = [{op for op, *_ in course.turns} for course in later]
    assert tested == [{COPY}, {READ}]  # each once, and nothing that is not used
    turns = [turn for course in later for turn in course.turns]
    assert {len(kernels) for _, kernels, _, _ in turns} == {2}  # nobody else takes part
    assert all(course.closed for course in courses + later)
    assert load(file) == known


@pytest.mark.parametrize("disturbed", [0.0, 0.5])
def test_a_search_finds_the_best_two_whatever_disturbs_half_of_the_turns(tmp_path, disturbed):
    file, courses = tmp_path / "host.json", []
    measured(file, courses, disturbed=disturbed).prepare()
    for op in OPS:
        best = tuple(reversed(_native.kernels(op)))[:2]  # as policies() has it
        assert load(file)[Regime(all_threads=False, beyond=False).case(op)] == best
    # The slower half leaves; narrower twins (avx2 of avx512) join late, and bring no other family.
    fields = [
        len({kernel.replace("-avx512", "-avx2") for kernel in kernels})
        for op, kernels, _, _ in courses[0].turns
        if op == READ
    ]
    assert fields == sorted(fields, reverse=True)
    assert fields[-1] < fields[0]


@pytest.mark.parametrize(("policy", "anew"), [(0.9, True), (0.99, False), (1.1, False)])
def test_an_order_is_reversed_only_by_more_than_noise(tmp_path, policy, anew):
    file = tmp_path / "host.json"
    measured(file, []).prepare()
    best, second = load(file)[Regime(all_threads=False, beyond=False).case(READ)]
    others = dict.fromkeys(_native.kernels(READ), 2.0)
    courses = []
    again = measured(file, courses, others | {best: 1.0, second: policy})
    chosen = again.choose(READ, [CPU], 4096).kernel
    assert chosen == (second if anew else best)


@pytest.mark.parametrize("faster", ["second", "default"])
def test_a_best_one_that_no_longer_is_has_all_searched_again(tmp_path, faster):
    file = tmp_path / "host.json"
    first = measured(file, [])
    first.prepare()
    where = Regime(all_threads=False, beyond=False)
    best, second = load(file)[where.case(COPY)]
    default = _native.default_kernel(COPY, streaming=False)
    overtaking = second if faster == "second" else default
    other = next(n for n in _native.kernels(COPY) if n not in (best, second, default))
    again = measured(file, [], policies() | {best: 4.9, overtaking: 3.0, other: 1.0})
    assert again.choose(COPY, [CPU], 4096).kernel == other
    assert load(file)[where.case(COPY)] == (other, overtaking)


def test_a_choice_of_a_busy_machine_heals_whichever_is_faster(tmp_path):
    file = tmp_path / "host.json"
    where = Regime(all_threads=False, beyond=False)
    measured(file, []).prepare()
    stored = {*load(file)[where.case(COPY)], _native.default_kernel(COPY, streaming=False)}
    missed = next(name for name in _native.kernels(COPY) if name not in stored)
    faster = dict.fromkeys(_native.kernels(COPY), 2.0) | {missed: 1.6}
    runs = (measured(file, [], faster).choose(COPY, [CPU], 4096).kernel for _ in range(1000))
    assert missed in runs


def test_without_memory_to_measure_on_the_defaults_remain(tmp_path):
    def course_of(where):
        raise OSError(12, "Cannot allocate memory")

    kernels = Kernels(None, tmp_path / "host.json", course_of)
    chosen = kernels.choose(READ, [CPU], 4096)
    assert chosen.kernel == _native.default_kernel(READ, streaming=False)
    assert chosen.why == "by default, not measured"


CPUINFO = """processor : 0
vendor_id : AuthenticAMD
cpu family : 25
model : 1
model name : AMD EPYC 7R13
stepping : 1
microcode : 0xa0011d1
flags : fpu hypervisor
"""


def test_what_is_remembered_is_of_one_processor_its_microcode_hypervisor_and_threads(tmp_path):
    def file(cpuinfo, threads):
        machine = Captured({"proc/cpuinfo": cpuinfo.encode()})
        return remembered_file(threads, machine, tmp_path).name

    names = {
        file(CPUINFO, 2),
        file(CPUINFO, 4),
        file(CPUINFO.replace("0xa0011d1", "0xa0011d2"), 2),
        file(CPUINFO.replace("stepping : 1", "stepping : 2"), 2),
        file(CPUINFO.replace("7R13", "7R32"), 2),
        file(CPUINFO.replace(" hypervisor", ""), 2),
    }
    assert len(names) == 6
    assert file(CPUINFO, 2) == (
        "host-amd-epyc-7r13-cpu-family-25-model-1-stepping-1-microcode-0xa0011d1"
        "-without-a-name-2-threads.json"
    )


def test_a_cpu_with_one_kernel_has_that_one(tmp_path, monkeypatch):
    """RISC-V has but one that reads."""
    monkeypatch.setattr(_native, "kernels", lambda op: ["portable"])
    monkeypatch.setattr(_native, "default_kernel", lambda op, beyond: "portable")
    monkeypatch.setattr(_native, "linear_kernel", lambda op: "portable")
    file = tmp_path / "host.json"
    for _ in range(2):
        kernels = measured(file, [])
        assert kernels.choose(READ, [CPU], 1 << 30).kernel == "portable"
    assert load(file)


@pytest.mark.parametrize(
    ("operation", "transfers", "prepares"),
    [
        ("copy", 1, True), ("peak-triad", 1, True), ("chase", 2, True),
        ("stream-triad", 1, False), ("chase", 1, False), ("primes", 1, False),
        ("ping-pong", 1, False),
    ],
)  # fmt: skip
def test_kernels_are_searched_only_for_what_chooses_one(operation, transfers, prepares):
    """A first look chooses none, so it waits for no search."""
    asked = []
    kernels = SimpleNamespace(prepare=lambda: asked.append(operation))
    backend = HostBackend(read_host().nodes, kernels)
    assert backend.refusal(parse_transfer("host:0 -> null by cpu*1")) is None
    assert asked == []
    backend.ready(named(operation), transfers)
    assert bool(asked) is prepares
