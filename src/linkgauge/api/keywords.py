"""The keyword arguments of the Python API, which are the commands' options. None stands for an
option's default, but `out=None` means that the run is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Literal, TypedDict

StrPath = str | PathLike[str]
Texts = str | Sequence[str]
"""A text, or several."""
Seconds = float | str
"""A time in seconds, or text: `2m`."""
Fraction = float | str
"""A fraction, or text: `1%`."""


class SimulatedKeywords(TypedDict, total=False):
    machine: StrPath | None
    faults: Texts
    change: str | None


class SamplingKeywords(TypedDict, total=False):
    samples: int | None
    loops: int | None
    precision: Fraction | None
    max_time: Seconds | None
    timeout: Seconds | None
    verify: bool


class KeepingKeywords(TypedDict, total=False):
    label: str
    out: StrPath | None
    wait: bool


class EngineKeywords(TypedDict, total=False):
    kernel: Literal["plain", "bulk"] | None
    blocks: int | None
    threads: int | None
    streams: int | None
    untuned: bool
    affinity: bool
    host_kernel: str | None
    nsys: bool
    ncu: bool


class CopyKeywords(
    SamplingKeywords, SimulatedKeywords, KeepingKeywords, EngineKeywords, total=False
):
    profile: str


class WhichKeywords(TypedDict, total=False):
    backend: Texts
    device: Texts
    size: str | int | None


class RunKeywords(CopyKeywords, WhichKeywords, total=False):
    prefix: Texts
    only_d2d: bool
    parallel_pairs: bool
    sample_pairs: int | None
    seed: int | None
    numa_node: int | None
    host_mode: Literal["stream", "peak"] | None
    tune: bool
    hardware: StrPath | None
    limits: StrPath | None
    waivers: StrPath | None
    duration: Seconds | None
    budget: Seconds | None
    max_temperature: float | None
    types: str | None
    reductions: str | None
    roots: str | None
    split: str | None
    aggregate: int | None
    blocking: bool
    graphed: bool
    registered: Literal["local", "symmetric"] | None


class ScaleKeywords(
    SamplingKeywords, SimulatedKeywords, KeepingKeywords, WhichKeywords, total=False
):
    gpus: str | None
    nodes: str | None


class VaryKeywords(
    SamplingKeywords, SimulatedKeywords, KeepingKeywords, WhichKeywords, total=False
):
    prefix: Texts
    experiment: str | None
    cpus: Texts
    numa_node: Texts
    memory: Texts
    streams: int | Sequence[int]
    affinity: Texts
    host_kernel: Texts
    engine: Texts
    graph: Texts
    env: Texts
    prepare: str | None
    rounds: int
    significance: Fraction
    profile: str
    host_mode: Literal["stream", "peak"] | None


class CheckKeywords(SimulatedKeywords, total=False):
    under: Seconds
    backend: Texts
    devices: int | None
    limits: StrPath | None
    waivers: StrPath | None
    baseline: StrPath | None
    label: str
    out: StrPath | None


class DevicesKeywords(TypedDict, total=False):
    machine: StrPath | None
    root: StrPath | None
    backend: Texts
    hardware: StrPath | None


class ExpectKeywords(TypedDict, total=False):
    change: str | None
    backend: Texts


class DoctorKeywords(TypedDict, total=False):
    machine: StrPath | None
    root: StrPath | None


class CompareKeywords(TypedDict, total=False):
    benchmark: Texts
    significance: Fraction
    detect: Fraction
    history: bool


class GateKeywords(TypedDict, total=False):
    benchmark: Texts
    force: bool
    significance: Fraction
    min_loss: Fraction
    detect: Fraction | None
    allow_noisy: bool
    rerun: int | None
    history: bool
    limits: StrPath | None
    waivers: StrPath | None
    wait: bool
    out: StrPath


class JudgeKeywords(TypedDict, total=False):
    machine: StrPath | None
    limits: StrPath | None
    label: str
    out: StrPath | None
